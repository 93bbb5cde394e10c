"""Does an engine report what was planted? The instrument, tested against a server whose truth is known."""
