"""The page of a bisection."""
