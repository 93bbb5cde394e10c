"""What must hold across the keys and files of a configuration, beyond the shape of each file."""
