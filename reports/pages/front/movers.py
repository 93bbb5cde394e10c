"""The largest movers of tonight: what moved furthest, and whether anybody was told of it."""

from analysis.judging.incidents import Incident
from analysis.judging.judgement import Judgement
from analysis.judging.movers import Mover, find_mover, rank
from reports.wording.changes import by_change

_MOST = 3


def find_movers(judgement: Judgement, night: str) -> list[tuple[Mover, Incident | None]]:
    """Give the largest movers of a night, the furthest first, with what was told of them."""
    movers = rank(
        (
            find_mover(judged.series, judged.change_points, judged.newest_noise, night)
            for judged in judgement.series
        ),
        _MOST,
    )
    told = by_change(reversed(judgement.incidents))  # where two tell of a place, the first does
    return [
        (mover, told.get((mover.series.key, mover.series.points.index(mover.point))))
        for mover in movers
    ]
