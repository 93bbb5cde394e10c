"""A database in a dictionary: for tests of order and failure, never for a number."""
