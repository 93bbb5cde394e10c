"""What clients write and read, as pure functions of (seed, index)."""
