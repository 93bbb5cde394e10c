"""Which release brought a change: what to probe next, what each probe taught, and the command."""
