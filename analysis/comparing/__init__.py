"""Two sides that took turns: how much they differ, when that is enough, and the commands that ask."""
