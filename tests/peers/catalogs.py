"""The configuration that ships, read once for all tests that only look at it."""

from functools import cache
from pathlib import Path

from perf.config.catalog import Catalog, load_catalog

CONFIGS = Path(__file__).parents[2] / "configs"


@cache
def shipped() -> Catalog:
    """Return the catalog of configs/, which nobody can change: loading it takes a second."""
    return load_catalog(CONFIGS)
