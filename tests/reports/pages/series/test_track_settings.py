"""What moved on a chart is named by its settings where they are known."""

from analysis.judging.explanations import Explanation
from analysis.orchestration.setting_words import find_changed
from perf.model.results import Move
from reports.pages.series.track import _name_move


def test_a_moved_configuration_is_named_by_its_settings() -> None:
    move = Move(place=1, name="config default", before="9596b7985b31", after="83160b5d8237")
    one = Explanation(name=move.name, before=move.before, after=move.after)
    knobs = find_changed(one, ({"config": {"a": 1}}, {"config": {"a": "batch"}}))
    assert list(_name_move(move, {one: knobs})) == [("config default, a", "1", "batch")]
    assert list(_name_move(move, {})) == [("config default", "9596b7985b31", "83160b5d8237")]
