"""One experiment as one file, for a mail or a ticket."""
