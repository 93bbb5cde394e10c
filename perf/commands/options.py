"""The options that commands share: where the data are, where the configuration is."""

import shlex
from collections.abc import Callable, Collection
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


def spell_command(
    context: click.Context, without: Collection[str] = ("data", "output"), **instead: str
) -> str:
    """Return the command line that asks the same again; defaults and options `without` stay out.

    `instead` are values to be said in place of those that were given.
    """
    words = ["knickpoint", context.command.name or ""]
    for option in context.command.params:
        name = option.name or ""
        value = instead.get(name, context.params.get(name))
        if name in without or value in {None, option.get_default(context)}:
            continue
        for each in value if isinstance(value, tuple) else (value,):
            words.append(option.opts[0])
            if each is not True:
                words.append(f"{each:.15g}" if isinstance(each, float) else f"{each}")
    return shlex.join(words)
