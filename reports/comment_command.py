"""The command that tells GitHub: a comment on a pull request, and a check run on its head."""

import click


@click.command()
def comment() -> None:
    """Tell a pull request on GitHub what a comparison came to."""
    raise NotImplementedError
