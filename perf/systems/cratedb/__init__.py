"""CrateDB, and the client side over HTTP."""
