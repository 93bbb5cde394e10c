"""The databases: `contract` says what each must do, and a folder with a `system.py` is one.

`cql` is shared by the systems that speak CQL, `conformance` is what each session must keep to, and
`registry` finds the systems. To add a database, add a folder: no other file changes.
"""
