"""The load engine in Python: a process that sends operations on schedule and records their times."""
