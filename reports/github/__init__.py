"""GitHub as a client sees it: connection, patience, comments and check runs."""
