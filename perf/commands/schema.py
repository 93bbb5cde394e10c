"""`knickpoint schema`: the JSON Schemas of configuration files, for editors."""

from pathlib import Path

import click

from perf.config.schema import write_schemas


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("configs/schema"),
    show_default=True,
    help="Directory to write the schemas to.",
)
def schema(output: Path) -> None:
    """Write JSON Schemas of the configuration files.

    Editors check them as you type.
    """
    for path in write_schemas(output):
        click.echo(path)
