"""The front page, and the lists that it leads to."""
