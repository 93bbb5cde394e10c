"""ScyllaDB; its client side is `perf.systems.cql`."""
