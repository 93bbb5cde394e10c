"""JUDGE: a pure core, values in and values out; only `commands` touches files or a terminal."""
