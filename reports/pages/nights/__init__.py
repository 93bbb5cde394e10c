"""The list of nights, and a page for each."""
