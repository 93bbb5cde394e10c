"""The vocabulary: what is meant, measured and kept, as immutable values. Pure."""
