"""The page of a trial."""
