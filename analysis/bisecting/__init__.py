"""Which release brought a change: the next probe, or the culprit with its odds. Pure."""
