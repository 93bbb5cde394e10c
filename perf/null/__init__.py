"""The null server: it answers at planted times and stores nothing; and its client."""
