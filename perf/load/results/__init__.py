"""What an engine wrote becomes phases, samples and counters."""
