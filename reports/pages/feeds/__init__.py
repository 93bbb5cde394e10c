"""What other programs read: Atom feed, badges, JUnit XML, JSON and Parquet."""
