"""TELL, elsewhere: feed, badges, exports, reports for other programs, a chat channel, GitHub issues."""
