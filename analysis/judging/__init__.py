"""A whole history is judged: changes, incidents, what explains them, what people decided. Pure."""
