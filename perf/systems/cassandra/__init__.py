"""Apache Cassandra; its client side is `perf.systems.cql`."""
