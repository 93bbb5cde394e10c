"""What is run on a host and read of it: connections, facts, canaries, leases, pinning, tuning."""
