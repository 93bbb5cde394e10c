"""What chart specifications share that are made here; series are drawn by pages/series/series*.js."""

from collections.abc import Mapping
from typing import TypeAlias

Spec: TypeAlias = Mapping[str, object]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
