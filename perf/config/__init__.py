"""Configuration: YAML under configs/ becomes values of `perf.model.design`, or one complete complaint.

`document` reads one YAML file, `problems` puts what is wrong with its shape into words, `checks`
looks across keys and files, `catalog` brings them together, `identity` gives contents their hash and
`schema` exports JSON Schemas for editors; only `triage_file` writes. What the values mean is written in
`perf.model.design`.
"""

from perf.config.catalog import TRIAGE_FILE, Catalog, default_root, load_catalog
from perf.config.schema import schema_texts, write_schemas
from perf.config.triage_file import add_entries
from perf.model.identity import content_hash, named

__all__ = [
    "TRIAGE_FILE",
    "Catalog",
    "add_entries",
    "content_hash",
    "default_root",
    "load_catalog",
    "named",
    "schema_texts",
    "write_schemas",
]
