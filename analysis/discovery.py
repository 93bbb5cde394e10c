"""False-discovery control: which of a night's changes may be called confirmed. Pure."""
