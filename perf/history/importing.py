"""Foreign results become trials: read all files, name what they do not tell, seal one bundle per run.

Nothing is written unless every file is sound. A trial's id comes from the content of its run and the
names given to it, so that importing the same file twice adds nothing. Formats are in `importers`.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from perf.history import bundle
from perf.history.faults import find_faults
from perf.history.importers.formats import Format
from perf.history.importers.run import File, ForeignRun, Naming, Unreadable
from perf.history.store import open_history
from perf.local import disk
from perf.local.paths import DataPaths
from perf.local.plain_files import read_plain
from perf.model.errors import BundleError, UsageError
from perf.model.results import Interval, Named, Purpose, Release, Trial, TrialId, TrialStatus
from perf.model.shown import escape_control_characters, list_some, printable

NIGHTLY = "nightly"
"""The line of a moving target: all of its builds have one ordinal, so that they are ordered by time."""
IMPORTED = "imported"
"""The name of what a foreign run has not: topology, testbed, config."""

_NEEDED = ("system", "release", "workload")
_HASH_DIGITS = 12
_ID_DIGITS = 16
_TELL_EVERY = 200
_WAIT_S = 600.0
_END_S = 253_402_300_799
"""The last second of the year 9999."""
_LONGEST_NAME = 1000
_MOST_FACTS = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What came in: new trials, those that were there already, and how many series they have."""

    new: int
    known: int
    series: int


@dataclass(frozen=True, slots=True)
class _FoundTrial:
    """A run with the trial that it becomes."""

    trial: Trial
    intervals: tuple[Interval, ...]


def import_files(
    paths: DataPaths,
    kind: Format,
    files: Sequence[Path],
    *,
    naming: Naming,
    report: Callable[[str], None],
) -> Imported:
    """Import all runs of all files as trials: bundles under trials/, and rows of the history.

    Raises:
        UsageError: files or rows are bad, or something is missing: all of it at once, and nothing is
            written.
        UsageError: another import keeps writing bundles here.
        BundleError: a bundle cannot be written; those before it are kept, and the same command goes on.
        HistoryError: the history cannot be written; the bundles are kept.

    """
    found = _read_all(kind, files, naming)
    new = 0
    with _alone(paths, report):
        for count, one in enumerate(found, start=1):
            if not (paths.trials / one.trial.id).exists():
                bundle.seal(bundle.stage(paths, one.trial.id), one.trial, one.intervals)
                new += 1
            if count % _TELL_EVERY == 0:
                report(f"{count} of {len(found)} runs written")
    with open_history(paths.history) as history:
        for one in found:
            history.append(paths.trials / one.trial.id)
    series = {identity for one in found for identity in _series(one.trial)}
    return Imported(new=new, known=len(found) - new, series=len(series))


@contextmanager
def _alone(paths: DataPaths, report: Callable[[str], None]) -> Iterator[None]:
    """Let one process at a time write bundles of foreign runs: the same runs have the same names."""
    try:
        paths.data.mkdir(parents=True, exist_ok=True)
        lock = FileLock(paths.data / "import.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            report(f"another import writes into {paths.data}; this one waits for it")
            lock.acquire(timeout=_WAIT_S)
    except Timeout:
        raise UsageError(
            f"another import has been writing into {paths.data} for {_WAIT_S:g} s; wait until it has "
            "ended, then run this one again: what is there already is not written twice"
        ) from None
    except OSError as error:
        what = f"nothing can be written into {paths.data}"
        raise BundleError(f"{what}: {disk.explain(error)}") from error
    try:
        yield
    finally:
        lock.release()


def _read_all(kind: Format, files: Sequence[Path], naming: Naming) -> tuple[_FoundTrial, ...]:
    """Read all files, each run once; refuse all of them if anything is wrong with one."""
    problems: list[str] = []
    found: dict[TrialId, _FoundTrial] = {}
    for path in files:
        try:
            modified_at = datetime.fromtimestamp(min(max(path.stat().st_mtime, 0), _END_S), UTC)
            text = read_plain(path, kind.most_bytes).decode()
            runs = kind.read(File(name=str(path), text=text, said=naming))
        except Unreadable as error:
            problems += error.problems
            continue
        except UnicodeDecodeError as error:
            problems.append(f"{path}: not text in UTF-8: {error.reason} at byte {error.start}")
            continue
        except OSError as error:
            problems.append(f"{path} cannot be read: {error.strerror}")
            continue
        for run in runs:
            named = _unite(run.stated, naming)
            if missing := [name for name in _NEEDED if not getattr(named, name)]:
                problems.append(
                    f"{run.place}: it has no {', no '.join(missing)}; set it with --{missing[0]}"
                )
                continue
            try:
                trial = _make_trial(kind, run, named, naming, modified_at)
            except OverflowError:
                problems.append(f"{run.place}: its time lies outside of the years 1 to 9999 in UTC")
                continue
            faults = (*find_faults(trial), *_find_oddities(trial))
            problems += [f"{run.place}: {fault}" for fault in faults]
            found.setdefault(trial.id, _FoundTrial(trial, run.intervals))
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems):,} problems"
        listed = "\n".join(f"  {escape_control_characters(problem)}" for problem in list_some(problems))
        raise UsageError(f"{count}, so nothing was imported:\n{listed}")
    return tuple(sorted(found.values(), key=lambda one: (one.trial.started_at, one.trial.id)))


def _unite(stated: Naming, said: Naming) -> Naming:
    """Return what a file tells, where the user says nothing else."""
    names = (field.name for field in fields(Naming))
    return replace(
        stated, **{name: value for name in names if (value := getattr(said, name)) not in (None, "")}
    )


def _make_trial(
    kind: Format, run: ForeignRun, named: Naming, said: Naming, modified_at: datetime
) -> Trial:
    system, workload = named.system or "", named.workload or ""
    release = Release(
        system=system,
        version=named.release or "",
        line=named.line or NIGHTLY,
        ordinal=named.ordinal or 0,
    )
    testbed, config = named.testbed or IMPORTED, named.config or IMPORTED
    experiment = named.experiment or f"{system}-{workload}"
    started_at = (named.started_at or modified_at).astimezone(UTC)
    began_at = run.stated.started_at
    length = run.finished_at - began_at if run.finished_at and began_at else None
    names = (experiment, kind.engine, workload, testbed, config, said.night, said.started_at)
    digits = _hash(run.identity, release, names, digits=_ID_DIGITS)
    return Trial(
        id=TrialId(f"{bundle.IMPORTED}{kind.engine}-{digits}"),
        night=named.night or started_at.date().isoformat(),
        purpose=Purpose.SCHEDULED if said.is_news else Purpose.IMPORTED,
        experiment=experiment,
        release=release,
        artifact=None,
        topology=_named(IMPORTED),
        testbed=_named(testbed),
        testbed_class=testbed,
        workload=Named(name=workload, sha256=_hash(kind.engine, workload)),
        config=_named(config),
        engine=kind.engine,
        seed=0,
        started_at=started_at,
        finished_at=started_at + length if length else started_at,
        status=TrialStatus.COMPLETED,
        environment_before=run.settings,
        environment_after=run.findings,
        samples=run.samples,
    )


def _find_oddities(trial: Trial) -> Iterator[str]:
    """Find what the history cannot hold, and names that would break what shows them."""
    if not any(sample.iteration is None for sample in trial.samples):
        yield "it has no values"
    if trial.finished_at < trial.started_at:
        yield f"it ends at {trial.finished_at}, before its start at {trial.started_at}"
    if len(facts := (*trial.environment_before, *trial.environment_after)) > _MOST_FACTS:
        yield f"it has {len(facts):,} settings and findings; at most {_MOST_FACTS:,} are kept"
    for fact in facts:
        if not fact.name.isprintable() or len(fact.name) > _LONGEST_NAME:
            yield f"setting {printable(repr(fact.name))} is too long, or cannot be printed; rename it"
        elif fact.value != fact.value.encode(errors="replace").decode():
            yield f"setting {fact.name} holds half of a character; fix its text"
    names = {
        ("system", trial.release.system),
        ("release", trial.release.version),
        ("line", trial.release.line),
        ("workload", trial.workload.name),
        ("experiment", trial.experiment),
        ("testbed", trial.testbed.name),
        ("config", trial.config.name),
        *(("phase", sample.phase) for sample in trial.samples),
        *(("operation", sample.operation) for sample in trial.samples),
        *(("statistic", sample.statistic) for sample in trial.samples),
    }
    for what, name in sorted(names):
        if not name.isprintable():
            yield f"{what} {printable(repr(name))} holds characters that cannot be printed; rename it"
        elif len(name) > _LONGEST_NAME:
            yield f"{what} {printable(repr(name))} has more than {_LONGEST_NAME} characters"


def _named(name: str) -> Named:
    """Name a configuration that is only a name: its hash differs where the name does."""
    return Named(name=name, sha256=_hash(name))


def _hash(*values: object, digits: int = _HASH_DIGITS) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()[:digits]


def _series(trial: Trial) -> set[tuple[str, ...]]:
    """Return what tells the series of an import apart."""
    release, testbed = trial.release, trial.testbed_class
    run = (release.system, release.line, trial.workload.name, testbed, trial.config.name)
    return {
        (*run, sample.phase, sample.operation, sample.metric, sample.statistic)
        for sample in trial.samples
        if sample.iteration is None
    }
