"""The command of triage: what has been decided about changes, and writing a decision down."""

import difflib
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import click

from analysis.detection import words
from analysis.judging.description import say_obstacle
from analysis.judging.incidents import Incident
from analysis.judging.judgement import Judgement
from analysis.judging.triage import PATTERNS, Account, Decision, account, describe_place, match, propose
from analysis.orchestration.judging import judge_history
from perf.commands.options import configs_option, data_option
from perf.config.catalog import TRIAGE_FILE, default_root, load_catalog
from perf.config.triage_file import add_entries
from perf.local.paths import DataPaths
from perf.model.errors import UsageError
from perf.model.rules import TriageEntry, TriageState

_HOLDS_FOR = timedelta(days=90)
"""How long the suggested entries hold: a quarter, in which an acknowledged change should be settled."""
_SHOWN = 5
"""Changes that are listed of one entry or incident; the others are counted."""


@click.group()
def triage() -> None:
    """Decide about a change, once.

    A change that somebody has looked at is written into triage.yaml of the configuration directory:

    \b
    acknowledged  it is real and somebody is on it       (--expires: then it is news again)
    expected      it is real and meant: the price of a feature, a gain that was planned
    fixed         it was fixed in a release              (--fixed-in)
    testbed       the hosts did it, not the database
    ignored       it is not worth anybody's time         (--expires: then it is news again)

    An entry says which series it is about, where (between which releases or nights) and in which
    direction; anything else stays news. What comes back at or after the release of its fix is news as
    well, and says that it came back. An entry deletes nothing: the change stays on its pages, and the
    verdict of its series speaks of the points since. Because an entry silences, it is reviewed like
    code: this command writes into the file, you commit it.

    \b
    knickpoint triage list
    knickpoint triage add 3f9a1c20 --state acknowledged --owner storage --note "ticket 123" \\
        --expires 2027-01-31
    """  # noqa: D301  \b is click's mark for "do not re-wrap"


@triage.command("list")
@data_option
@configs_option
def list_entries(data: Path, configs: Path | None) -> None:
    """List decisions, and incidents without one.

    Each decision comes with what it covers in the history.

    Entries that have expired, and those that cover nothing (so far, or by a slip), say so and why.
    An incident without an entry comes with the command that writes one.
    """
    catalog, today = load_catalog(configs or default_root()), _today()
    judgement = judge_history(DataPaths(data), catalog, today)
    for line in describe(judgement, catalog.triage, today):
        click.echo(line)


@triage.command()
@click.argument("incident")
@click.option("--state", required=True, type=click.Choice([state.value for state in TriageState]))
@click.option("--owner", required=True, help="Who answers for it: a person or a team.")
@click.option("--note", required=True, help="Why, in a sentence; a ticket.")
@click.option(
    "--expires",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="YYYY-MM-DD",
    help="Last day on which it holds. Needed for acknowledged and ignored.",
)
@click.option("--fixed-in", metavar="VERSION", help="First release with the fix. Needed for fixed.")
@data_option
@configs_option
def add(
    *,
    incident: str,
    state: str,
    owner: str,
    note: str,
    expires: datetime | None,
    fixed_in: str | None,
    data: Path,
    configs: Path | None,
) -> None:
    """Write an entry for INCIDENT.

    `knickpoint detect` and the pages give its name.

    The entry covers the changes of the incident: its place spans them, and its series are named by all
    that they have in common. Numbers that rose and numbers that dropped get an entry each. Read what
    was written: narrow it where it says more than you decided, then have it reviewed and commit it.
    Comments and order of the file stay. A second, other entry for the same incident is refused.
    """
    if not owner.strip() or not note.strip():
        raise UsageError(
            "--owner and --note must say something: an entry is a claim that somebody makes"
        )
    root, today = configs or Path("configs"), _today()
    if not root.is_dir():
        raise UsageError(f"there is no {root}/ here to write into; give --configs")
    if expires is not None and expires.date() < today:
        raise UsageError(f"--expires {expires:%Y-%m-%d} is over already; today is {today}")
    judgement = judge_history(DataPaths(data), load_catalog(root), today)
    found = _find(incident, judgement.incidents)
    decision = Decision(
        state=TriageState(state),
        owner=owner.strip(),
        note=note.strip(),
        expires=expires.date() if expires else None,
        fixed_in=fixed_in,
    )
    entries = propose(found.name, found.changes, decision)
    path = root / TRIAGE_FILE
    text = add_entries(path, entries)
    covered = sum(match(change, entries, today) is not None for change in found.changes)
    changes = words.counted(len(found.changes), "change", "changes")
    click.echo(f"written into {path}:\n\n{text}" if text else f"{path} says so already")
    click.echo(f"It covers {covered} of the {changes} of incident {found.name}.")
    click.echo("Narrow it where it says more than was decided, have it reviewed, and commit it.")


def describe(judgement: Judgement, entries: Sequence[TriageEntry], today: date) -> Iterator[str]:
    """Describe what each entry does, line by line, and which incidents have none."""
    series = [judged.series for judged in judgement.series]
    changes = [change for judged in judgement.series for change in judged.change_points]
    accounts = account(entries, series, changes, today)
    over = sum(one.is_expired for one in accounts)
    idle = sum(not one.covers for one in accounts)
    yield (
        f"{words.counted(len(entries), 'entry', 'entries')}: {over} expired,"
        f" {idle} without a change to cover"
        if entries
        else "No decisions recorded."
    )
    for one in accounts:
        yield ""
        yield from _describe_account(one)
    bare = [one for one in judgement.incidents if one.triage is None and not one.fixed_by]
    yield ""
    yield f"{words.counted(len(bare), 'open incident', 'open incidents')} without an entry"
    for incident in bare:
        yield ""
        yield from _describe_incident(incident, today)


def _describe_account(one: Account) -> Iterator[str]:
    entry = one.entry
    named = (getattr(entry, name) for name in PATTERNS)
    what = " ".join(value for value in named if value != "*") or "every series"
    fix = f", fixed in {entry.fixed_in}" if entry.fixed_in else ""
    yield f"{entry.name}  {entry.state}: a {entry.sign} of {what}, {describe_place(entry)}{fix}"
    until = f" (holds until {entry.expires})" if entry.expires and not one.is_expired else ""
    yield f"    {entry.owner}: {entry.note}{until}"
    if one.is_expired:
        yield f"    EXPIRED on {entry.expires}: it covers nothing any more; renew or remove it"
    if one.obstacle:
        yield f"    COVERS NOTHING: {say_obstacle(entry, one.obstacle)}"
    if one.covers:
        verb = "would cover" if one.is_expired else "covers"
        yield f"    {verb} {words.counted(len(one.covers), 'change', 'changes')}:"
        for change in one.covers[:_SHOWN]:
            found = f"{words.movement(change)} {words.place(change)}"
            yield f"      {words.series(change.series.key)}: {found}"
        if len(one.covers) > _SHOWN:
            yield f"      and {len(one.covers) - _SHOWN} more"


def _describe_incident(incident: Incident, today: date) -> Iterator[str]:
    lead, others = incident.lead, len(incident.changes) - 1
    yield f"{incident.name}  {words.series(lead.series.key)}"
    more = f", and {words.counted(others, 'more change', 'more changes')}" if others else ""
    yield f"    {words.movement(lead)} {words.place(lead)} ({lead.outcome}, {lead.state.word}){more}"
    if incident.came_back_after is not None:
        entry = incident.came_back_after
        yield f"    CAME BACK: it was fixed in {entry.fixed_in} (entry {entry.name}, {entry.owner})"
    yield (
        f"    knickpoint triage add {shlex.quote(incident.name)} --state acknowledged --owner OWNER"
        f' --note "WHY" --expires {today + _HOLDS_FOR}'
    )


def _find(name: str, incidents: Sequence[Incident]) -> Incident:
    for incident in incidents:
        if incident.name == name:
            return incident
    known = [incident.name for incident in incidents]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "see: knickpoint triage list"
    raise UsageError(f"the history has no incident {name!r}; {hint}")


def _today() -> date:
    return datetime.now(UTC).date()
