"""The page of a comparison of two sides that ran interleaved."""
