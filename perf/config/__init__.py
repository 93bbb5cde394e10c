"""Configuration: YAML under configs/ becomes values of `perf.model.design`, or one complete complaint.

`catalog` brings the files together, `checks/` looks across keys and files, `schema` exports JSON
Schemas for editors, `difference` and `revisions` compare two configurations; only `triage_file` writes.
"""
