"""Measure databases and keep the results: everything that touches hosts, servers and the history.

Rooms, top first; each may import those below it:

- `commands`: one file per command; the only users of click.
- `jobs`: what holds a testbed for many trials: a night, a comparison, a matrix.
- `trial`: one trial, from an empty host to a sealed bundle, and whether it can be trusted.
- `config`: the files under `configs/` become values, or one complete list of complaints.
- `load`: offer load and bring back what was measured.
- `systems`: the contract of a database, and a room for each database.
- `releases`: find and fetch what is installed.
- `hosts`: what is run on a host, and read of it.
- `history`: trial bundles, and the DuckDB history made of them.
- `workloads`: all that follows from a workload alone; pure.
- `local`: this machine: files, YAML, child processes, progress lines.
- `model`: the vocabulary; pure, and it imports nothing else of Knickpoint.

`analysis` and `reports` import from here, never the reverse.
"""
