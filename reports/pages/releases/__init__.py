"""The list of releases, a page for each, and the page that compares any two."""
