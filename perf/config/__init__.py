"""Configuration: YAML under configs/ becomes values of `perf.design`, or one complete complaint.

`document` reads one YAML file, `problems` puts what is wrong with its shape into words, `checks`
looks across keys and files, `catalog` brings them together, `identity` gives contents their hash and
`schema` exports JSON Schemas for editors. What the values mean is written in `perf.design`.
"""

from perf.config.catalog import Catalog, default_root, load_catalog
from perf.config.identity import content_hash, named
from perf.config.schema import schema_texts, write_schemas

__all__ = [
    "Catalog",
    "content_hash",
    "default_root",
    "load_catalog",
    "named",
    "schema_texts",
    "write_schemas",
]
