"""The command `init`: a small repository of one's own, with a suite that runs and what it needs."""

import difflib
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from perf.commands.options import configs_option
from perf.config.catalog import Catalog, load_catalog
from perf.config.schema import write_schemas
from perf.local import durable
from perf.model.design import Suite
from perf.model.errors import UsageError

_DIFFERS = 1
_IGNORED = "# What Knickpoint measures and makes: back it up, do not commit it.\n/var/\n"
_README, _WORKFLOWS = "own_repository.md", "own_workflows"
_ON_GITHUB = re.compile(r"[\w.-]+/[\w.-]+@[\w./-]+")


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--suite", "suite_name", default="quickstart", show_default=True, help="What it measures."
)
@click.option(
    "--github",
    metavar="OWNER/NAME@REF",
    default="",
    help="Where Knickpoint is on GitHub: adds workflows that call it.",
)
@click.option("--upgrade", is_flag=True, help="Show what this version would write, and write nothing.")
@configs_option
def init(directory: Path, suite_name: str, *, github: str, upgrade: bool, configs: Path | None) -> None:
    """Make a repository of your own.

    Writes into DIRECTORY one suite that runs as it is, with its testbed, workloads and configurations,
    the rules of judging, schemas for your editor, a README and a .gitignore. Nothing that exists is
    written over. From there on the files are yours; commit them.

    \b
    knickpoint init our-performance
    cd our-performance
    knickpoint doctor
    knickpoint nightly

    Other suites, and all configurations that may be taken as examples, are among the files of
    Knickpoint itself; --configs names another directory to take from.

    With --github there are workflows as well (nightly, publish, watchdog, candidate, comment, bisect).
    They call those of that repository, at a tag or a commit: `--github example/knickpoint@v0.1.0`.

    With --upgrade, how the files here differ from those of this version is printed as a diff, your own
    edits as well: `knickpoint init . --upgrade | patch -p1` takes all of it, an editor some of it.

    Exit codes: 0 written, or nothing differs; 1 with --upgrade, something differs; 2 wrong usage.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    if github and not _ON_GITHUB.fullmatch(github):
        raise UsageError(
            f"--github {github}: write OWNER/NAME@REF, for example example/knickpoint@v0.1.0"
        )
    root = configs or _shipped()
    catalog = load_catalog(root)
    wanted = dict(_make_files(root, catalog, catalog.suite(suite_name)))
    if github:
        wanted |= _make_workflows(github, suite_name)
    present = {
        name: path.read_text(errors="replace")
        for name in wanted
        if (path := directory / name).is_file()
    }
    if upgrade:
        differing = [line for name in wanted for line in _compare(name, present, wanted)]
        click.echo("".join(differing), nl=False)
        click.get_current_context().exit(_DIFFERS if differing else 0)
    if taken := [name for name, text in present.items() if text != wanted[name]]:
        raise UsageError(
            f"nothing was written, since these exist in {directory} with another content:"
            f" {', '.join(sorted(taken))}; give another directory, or see with --upgrade what differs"
        )
    for name, text in wanted.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        durable.atomic_write(directory / name, text.encode())
    click.echo(f"{len(wanted)} files in {directory}. Next:")
    click.echo(f"  cd {directory}\n  knickpoint doctor --suite {suite_name}")
    click.echo(f"  knickpoint nightly --suite {suite_name}")


def _shipped() -> Path:
    """Return the configuration that came with the package or lies beside it, wherever this is run."""
    packaged = Path(__file__).parents[1] / "configs"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "configs"


def _make_files(root: Path, catalog: Catalog, suite: Suite) -> Iterator[tuple[str, str]]:
    """Yield all files by name, those that somebody reads first before the others."""
    said = {"version": version("knickpoint"), "suite": suite.name, "testbed": suite.testbed}
    yield "README.md", Path(__file__).with_name(_README).read_text().format(**said)
    yield ".gitignore", _IGNORED
    names = [f"suites/{suite.name}", f"testbeds/{suite.testbed}"]
    for one in suite.experiments:
        names += [f"topologies/{one.topology}", f"systems/{one.system}/{one.config}"]
        names.append(f"workloads/{catalog.workload_files.get(one.workload, one.workload)}")
    systems = {one.system for one in suite.experiments}
    names += [f"sources/{one.name}" for one in catalog.sources.values() if one.system in systems]
    names += ["detection", *(["triage"] if (root / "triage.yaml").is_file() else [])]
    for name in dict.fromkeys(names):
        yield f"configs/{name}.yaml", (root / f"{name}.yaml").read_text()
    with TemporaryDirectory() as place:
        for path in write_schemas(Path(place)):
            yield f"configs/schema/{path.name}", path.read_text()


def _make_workflows(github: str, suite: str) -> Iterator[tuple[str, str]]:
    repository, _, ref = github.partition("@")
    for path in sorted(Path(__file__).with_name(_WORKFLOWS).iterdir()):
        text = path.read_text()
        for word, instead in (("OWNER/NAME", repository), ("@REF", f"@{ref}"), ("SUITE", suite)):
            text = text.replace(word, instead)
        yield f".github/workflows/{path.name}", text


def _compare(name: str, present: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[str]:
    before, after = (text.splitlines(keepends=True) for text in (present.get(name, ""), wanted[name]))
    origin = f"a/{name}" if name in present else "/dev/null"
    yield from difflib.unified_diff(before, after, origin, f"b/{name}")
