"""How a series stands: its verdict, from the changes that were found in it."""
