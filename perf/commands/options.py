"""The options that commands share: where the data are, and where the configuration is."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

_OF_THE_PLACE = frozenset({"data", "output"})


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


def spell_command(context: click.Context) -> str:
    """Write the command line that asks the same again, without defaults and places of data."""
    words = ["knickpoint", context.info_name or ""]
    for option in context.command.params:
        name = option.name or ""
        value = context.params.get(name)
        if name in _OF_THE_PLACE or value in {None, option.get_default(context)}:
            continue
        words += (
            word
            for each in (value if isinstance(value, tuple) else (value,))
            for word in (option.opts[0], f"{each}")
        )
    return shlex.join(words)
