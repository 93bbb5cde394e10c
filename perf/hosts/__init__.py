"""What is true of the hosts around a trial."""
