"""How things are said on more than one page."""
