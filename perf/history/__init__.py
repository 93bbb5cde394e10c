"""What is kept: trial bundles (files) and the history (rows, rebuildable from the bundles)."""
