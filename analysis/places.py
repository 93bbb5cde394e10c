"""Where a change lies, in releases and in time, and whether two places meet."""
