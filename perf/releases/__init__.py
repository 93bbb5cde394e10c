"""Find a release, fetch its artifact, verify it, and keep it in the cache."""
