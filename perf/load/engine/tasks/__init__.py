"""What the engine sends, one module per workload: an operation from a stream of choices."""
