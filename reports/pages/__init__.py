"""A folder per kind of page, with its view, template, script and style; `page.py` makes the files."""
