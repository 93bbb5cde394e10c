"""`knickpoint selftest`: an engine must report the answer times planted in a server."""
