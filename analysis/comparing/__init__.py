"""Two sides that ran interleaved on the same hosts: how they differ, and when that is sure. Pure."""
