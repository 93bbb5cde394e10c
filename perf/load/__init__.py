"""The instrument: offers load to a system and records what came back."""
