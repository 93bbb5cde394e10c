"""The options that commands share: where the data are, and where the configuration is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def data_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --data, the data directory."""
    return click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("var"),
        show_default=True,
        help="Data directory: bundles, history and site.",
    )(command)


def configs_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --configs, the configuration directory."""
    return click.option(
        "--configs",
        type=click.Path(path_type=Path, file_okay=False),
        default=None,
        help="Configuration directory.  [default: configs/ here, else the packaged one]",
    )(command)
