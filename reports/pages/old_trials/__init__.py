"""Trials that have no page of their own any more: what is still shown of each, and where."""
