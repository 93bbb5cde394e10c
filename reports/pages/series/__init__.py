"""The page of a series, with its chart."""
