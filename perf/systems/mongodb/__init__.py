"""MongoDB: replica sets and sharded clusters, and the client side on pymongo."""
