"""The client side of CQL, shared by Cassandra and ScyllaDB."""
