"""The site: its context, rendering and publishing, base templates, shared scripts and styles."""
