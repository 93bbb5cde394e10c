"""This machine: its files, YAML, child processes, and the lines that show progress."""
