"""What other programs measured, read from their files: one module per format, all of them pure.

A module knows one format and nothing of bundles, the history or the command line. `formats` lists them.
"""
