"""Trial bundles (files), and the history in DuckDB that is rebuilt from them."""
