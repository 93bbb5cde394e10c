"""Does an engine report what was planted? The instrument, against a server whose truth is known."""
