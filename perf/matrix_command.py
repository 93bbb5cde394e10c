"""The command that backfills: it measures releases × experiments, what teaches most first."""

import click


@click.command()
def matrix() -> None:
    """Measure releases × experiments in the order that teaches most, skipping what is known."""
