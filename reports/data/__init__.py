"""What pages compare: the history by release and config, computed once; values, no words."""
