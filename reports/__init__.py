"""TELL: text out. What a page says is decided in `view`; how it looks, in `templates`."""
