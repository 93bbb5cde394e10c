"""What a change under configs/ does to a database, measured, put into a comment and posted."""
