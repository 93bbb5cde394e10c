"""A folder per kind of page, with its template, script and style; `page.py` makes the files."""
