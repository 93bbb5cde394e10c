"""Servers that store nothing and answer after planted times, in the protocols of the real ones."""
