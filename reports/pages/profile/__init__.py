"""What profiles of two sides say: which code moved, and the flame graph of the difference."""
