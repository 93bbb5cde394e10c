"""What every session promises, a list per data model: asked by tests and by `knickpoint prove`."""
