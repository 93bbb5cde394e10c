"""Jobs that hold a testbed: a night, a comparison, a matrix of releases × experiments."""
