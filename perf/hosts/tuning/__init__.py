"""Tuning profiles of hosts: read, applied with privileges, and proven."""
