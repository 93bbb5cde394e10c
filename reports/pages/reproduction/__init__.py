"""A published report beside what was measured here."""
