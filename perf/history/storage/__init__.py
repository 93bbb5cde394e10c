"""Where the history is kept: a DuckDB file, or a DuckLake shared by several labs."""
