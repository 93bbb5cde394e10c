"""MEASURE and HISTORY: the package that touches hosts, databases and the history file.

`model` and `design` are the words everything else is written in; `harness` is the trial on one page;
`systems` holds one module per database. `analysis` and `reports` import from here, never the reverse.
"""
