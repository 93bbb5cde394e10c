"""One module per data model: what each of its operations is, on the client."""
