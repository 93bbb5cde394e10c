"""What is told of an incident beside its nights: what trials in turns say."""

from dataclasses import dataclass

from analysis.detection.detection import ChangePoint
from analysis.detection.series import nights_of
from analysis.judging.incidents import Incident
from analysis.judging.judgement import JudgedSeries
from analysis.judging.remeasurement import Reply, compare_command
from reports.wording import links
from reports.wording.incidents import tell_missing
from reports.wording.measures import ends_words
from reports.wording.wording import (
    NOTHING,
    Badge,
    count,
    moment,
    night_words,
    percent,
    probability,
    sentence,
    series_words,
)

_MEANINGS = {
    True: Badge(kind="calm", symbol="●", word="Agrees"),
    False: Badge(kind="good", symbol="=", word="Rules it out"),
    None: Badge(kind="unsure", symbol="?", word="Cannot tell"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsRow:
    """What one comparison says of one series; `page` is that of the comparison."""

    title: str
    change: str
    interval: str
    trials: str
    when: str
    meaning: Badge
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MakingSure:
    """The evidence about an incident: from its nights, and side by side.

    `missing` says why there is nothing more to see side by side, or what would settle it; `command`
    does that. Both are empty where nothing is missing.
    """

    nights: str
    turns: tuple[TurnsRow, ...]
    missing: str
    command: str


def view_making_sure(
    incident: Incident,
    own: JudgedSeries,
    experiment: str,
    suite: str,
) -> MakingSure:
    """Put both kinds of evidence into words.

    `own` is the lead's series, `suite` one that has the experiment, empty if there is none.
    """
    question = incident.question
    return MakingSure(
        nights=_tell_nights(incident.lead, own),
        turns=tuple(_view_reply(change, reply) for change, reply in incident.replies),
        missing=tell_missing(incident),
        command=compare_command(question, suite, experiment) if question else "",
    )


def _tell_nights(lead: ChangePoint, own: JudgedSeries) -> str:
    start = max((one.index for one in own.change_points if one.index < lead.index), default=0)
    nights = nights_of(lead.series)
    return sentence(
        f"{percent(lead.relative_change)} ({probability(lead.p_value)}) from"
        f" {count(lead.index - start, 'point')} before and {count(lead.points_after, 'point')} after,"
        f" the newest of {night_words(nights[-1])}"
    )


def _view_reply(change: ChangePoint, reply: Reply) -> TurnsRow:
    answer, effect = reply.answer, reply.answer.effect
    return TurnsRow(
        title=series_words(change.series.key),
        change=percent(effect.relative_change) if effect else NOTHING,
        interval=ends_words(effect.low, effect.high) if effect else NOTHING,
        trials=f"{answer.baseline_trials} and {answer.candidate_trials}",
        when=moment(answer.finished_at).text,
        meaning=_MEANINGS[reply.agrees],
        page=links.comparison_page(answer.comparison),
    )
