"""What a session must keep to, one list per data model, for the tests and `knickpoint conformance`."""
