"""What every session must keep to, one list per data model, for the tests and `knickpoint prove`."""
