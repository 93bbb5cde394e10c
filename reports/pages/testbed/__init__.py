"""The page of the testbeds: hosts, canaries, use."""
