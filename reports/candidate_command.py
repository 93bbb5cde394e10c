"""The command of pull requests: what a change of configs/ does, measured side by side with its base."""

import click


@click.command()
@click.option("--base", required=True, metavar="REF", help="Where the change is to go, as in main.")
@click.option("--head", required=True, metavar="REF", help="The change.")
def candidate(base: str, head: str) -> None:
    """Measure what a change of configs/ does, base against head, side by side."""
    raise NotImplementedError(base, head)
