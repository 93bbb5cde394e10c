"""A recorded history with a known cause, shipped for `knickpoint demo`; README.md says what it is."""
