"""One series: its noise, its change points, and how sure they are. Pure."""
