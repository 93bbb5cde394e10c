"""The edges of judging: read the history, measure what is asked for, save what was found."""
