"""The command `knickpoint`: finds the subcommands by entry point, prints errors, sets exit codes.

Subcommands are a table in pyproject.toml (`knickpoint.commands`), so this module imports none of
them: `knickpoint measure` never loads the judging or the reporting packages.
"""

import ctypes
import gc
import io
import os
import signal
import sys
import traceback
import unicodedata
from contextlib import suppress
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points, version
from pathlib import Path
from types import FrameType

import click

from perf.local import disk
from perf.model.errors import KnickpointError, UsageError
from perf.model.shown import escape_control_characters

GROUP = "knickpoint.commands"
PR_SET_PDEATHSIG = 1
COULD_NOT = 3
INTERRUPTED = 130
OURS = ("perf", "analysis", "reports")

_GROUPS = {
    "Every day": {
        "nightly": "Measure, append, judge and report: the whole job",
        "measure": "Measure a suite, or one release once more",
        "append": "Put measured trials into the history",
        "detect": "Judge the history: what changed, and where",
        "report": "Write the history as a static site",
        "notify": "Send what is new to a channel or GitHub issues",
        "triage": "Decide about a change, once",
        "watchdog": "Alert when no recent night has been reported",
    },
    "Investigate": {
        "compare": "Compare two releases or configs, interleaved",
        "bisect": "Find the release that brought a change",
        "explain": "Show which code made two sides differ",
        "matrix": "Measure many releases, most informative first",
        "backtest": "Replay any series: what would be reported when",
        "history": "Query, import, repair or move the history",
        "candidate": "Measure what a change under configs/ does",
        "comment": "Write the result to its pull request on GitHub",
        "answer": "Do what a /knickpoint comment asks for",
    },
    "Set up": {
        "init": "Make a repository of your own",
        "doctor": "List what this machine lacks, and how to get it",
        "demo": "Write the site of a recorded real history",
        "releases": "List the known releases of a database",
        "workloads": "List the workloads, explain one, or try one",
        "host": "Tune, check and reserve the hosts of a testbed",
        "conformance": "Check that a database meets all assumptions",
        "selftest": "Check the load engines against known truth",
        "schema": "Write JSON Schemas of the configuration files",
    },
}
"""The commands as help lists them, each in a line; those of other packages follow by themselves.

Each summary is the first sentence of the command's own help, kept here so that none is loaded.
"""


_CONFIGS = Path(__file__).parents[1] / "configs"
"""What only a wheel has inside of the package."""
FORMER_NAMES = {"prove": "conformance"}
"""Names of commands that were renamed, which go on to work."""


class Commands(click.Group):
    """A group whose members are loaded only when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all installed subcommands, in the order of the help."""
        found = {entry.name for entry in _table()}
        known = [name for group in _GROUPS.values() for name in group if name in found]
        return known + sorted(found.difference(known))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, each with its summary, without loading those that are known."""
        left = self.list_commands(ctx)
        for title, group in _GROUPS.items():
            if lines := [(name, said) for name, said in group.items() if name in left]:
                with formatter.section(title):
                    formatter.write_dl(lines)
            left = [name for name in left if name not in group]
        if others := [(name, self.get_command(ctx, name)) for name in left]:
            with formatter.section("Others"):
                formatter.write_dl([(name, one.get_short_help_str()) for name, one in others if one])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest name for one that does not exist; click knows only loaded commands."""
        name, names = FORMER_NAMES.get(args[0], args[0]), self.list_commands(ctx)
        if name not in names and (near := get_close_matches(name, names, n=1)):
            ctx.fail(f"No such command {name!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, [name, *args[1:]])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one subcommand; say which extra is missing if its packages are not installed."""
        entry = next((entry for entry in _table() if entry.name == cmd_name), None)
        if entry is None:
            return None
        try:
            command = entry.load()
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in OURS:
                raise
            return _unavailable(cmd_name, error)
        if not isinstance(command, click.Command):
            raise TypeError(f"entry point {entry.value} is not a click command")
        return command


def _table() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def _unavailable(name: str, error: ModuleNotFoundError) -> click.Command:
    reason = (
        f"`knickpoint {name}` needs the Python package {error.name!r}, which is not installed; "
        "install everything with: pip install 'knickpoint[measure,detect,report]'"
    )

    def refuse(**_: object) -> None:
        raise UsageError(reason)

    options = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=refuse, short_help="(not installed)", context_settings=options)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 fine, 1 regression found, 2 wrong usage or config, 3 could not measure, "
    "130 interrupted.",
)
@click.version_option(
    version("knickpoint"),
    prog_name="knickpoint",
    message=f"%(prog)s, version %(version)s ({'wheel' if _CONFIGS.is_dir() else 'checkout'})",
)
def knickpoint() -> None:
    """Find the releases and configuration changes where a database's performance breaks.

    Begin with `knickpoint doctor`, then `knickpoint nightly`; its steps are measure, append, detect and
    report.
    """


def look_at_all_rarely() -> None:
    """Look for garbage among new objects as usual, but hardly ever among all.

    To look at all those of a large history takes half a second, and next to none is garbage.
    """
    gc.set_threshold(*gc.get_threshold()[:2], 1_000)


def main() -> None:
    """Run the command line; turn expected errors into a sentence and an exit code."""
    # Both on purpose: a shell without job control starts background commands with SIGINT ignored,
    # and a run that cannot be interrupted would leave its user only SIGKILL.
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    look_at_all_rarely()
    if os.environ.get("KNICKPOINT_DIE_WITH_PARENT"):
        # Set by the Makefile: when make itself is killed, this process is told to end in order.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    escape_terminal_output()
    try:
        code = knickpoint.main(standalone_mode=False)
    except KnickpointError as error:
        _say(f"knickpoint: {escape_control_characters(str(error))}")
        sys.exit(error.exit_code)
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        _say(
            "knickpoint: interrupted; finished trials are kept, and the same command goes on from there"
        )
        sys.exit(INTERRUPTED)
    except SystemExit:
        # click exits by itself only where the reader of our output (head, less) has seen enough.
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        step = f"\n{then}" if (then := disk.next_step(error)) else ""
        what = f"{where}{error.strerror or error}; nothing finished is lost{step}"
        _say(f"knickpoint: {escape_control_characters(what)}")
        sys.exit(COULD_NOT)
    except Exception:  # noqa: BLE001  a defect of ours must not look like "regression found" (1)
        _say(traceback.format_exc())
        _say("knickpoint: a defect of Knickpoint; please report the lines above")
        sys.exit(COULD_NOT)
    sys.exit(code if isinstance(code, int) else 0)


def _say(text: str) -> None:
    """Tell the user; where there is no room for it, as in a log on a full disk, the exit code tells."""
    with suppress(OSError):
        click.echo(text, err=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


_OBEYED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of controls, formats such as changes of direction, and ends of lines."""

_LAYOUT = "\n\t"


class EscapedOutput(io.TextIOWrapper):
    """Writes text as it is, but for what a terminal would obey: that is written as an escape."""

    def write(self, text: str) -> int:
        """Write the text; give how many characters it has."""
        super().write(escape(text))
        return len(text)


def escape(text: str) -> str:
    """Spell what a terminal would obey as Python spells it in ASCII; lines and tabs stay."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(
        ascii(one)[1:-1] if unicodedata.category(one) in _OBEYED and one not in _LAYOUT else one
        for one in text
    )


def escape_terminal_output() -> None:
    """Let all that this process writes to a terminal pass through `escape`, for as long as it lives."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and stream.isatty():
            tamed = EscapedOutput(
                stream.buffer, encoding=stream.encoding, errors="backslashreplace", line_buffering=True
            )
            setattr(sys, name, tamed)


if __name__ == "__main__":
    main()
