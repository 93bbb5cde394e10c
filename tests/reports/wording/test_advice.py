"""What to do about a changed configuration follows from what the files hold now."""

from dataclasses import replace

from made_up_nights import judge_nights

from analysis.judging.explanations import Explanation
from analysis.judging.incidents import Cause
from perf.model.results import Named
from reports.wording.advice import Step, advise
from reports.wording.reproducing import Contents

OLD, NEW = "9596b7985b31", "83160b5d8237"
COMPARE = "knickpoint compare --suite nightly --experiment cassandra-sensor-write --baseline 5.0.4/"


def steps(**files: str) -> tuple[Step, ...]:
    """Return the steps where these configs have these contents now."""
    nights = judge_nights(24)
    incident = replace(
        nights.judgement.incidents[0],
        cause=Cause.CONFIGURATION,
        explanations=(Explanation(name="config default", before=OLD, after=NEW),),
    )
    systems = frozenset(("cassandra", Named(name=name, sha256=sha)) for name, sha in files.items())
    first = nights.heads[incident.lead.first_after.trial]
    return advise(incident, first, "nightly", Contents(systems=systems))


def test_the_file_is_named_then_the_proof_then_the_decision() -> None:
    undo, prove, decide = steps(default=NEW, frozen=OLD)
    assert undo.text == "Undo the settings in configs/systems/cassandra/default.yaml, or accept them."
    assert prove.commands == f"{COMPARE}frozen --candidate 5.0.4/default"
    assert decide.commands.startswith("knickpoint triage add ")


def test_settings_that_no_file_has_are_saved_before_they_are_compared() -> None:
    prove = steps(default=NEW)[1]
    assert "save the old settings as configs/systems/cassandra/default-before.yaml first" in prove.text
    saved = prove.commands.splitlines()
    assert saved[1].startswith("git show REVISION:configs/systems/cassandra/default.yaml > ")
    assert saved[-1] == f"{COMPARE}default-before --candidate 5.0.4/default"


def test_settings_that_were_undone_already_are_not_to_be_undone_again() -> None:
    undone, prove, _ = steps(default=OLD)
    assert "has the old settings again" in undone.text
    assert prove.commands.endswith(f"{COMPARE}default --candidate 5.0.4/default-after")
