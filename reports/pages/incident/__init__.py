"""The page of an incident: what changed, how sure that is, and what to do."""
