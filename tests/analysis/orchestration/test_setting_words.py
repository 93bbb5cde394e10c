"""Settings that changed are named by key and value, as their database does."""

from analysis.orchestration.setting_words import say_settings, setting_values
from perf.config.difference import Knob, find_knobs


def knob(before: str, after: str, *steps: str, file: str = "config") -> Knob:
    return Knob(file=file, steps=steps or ("settings", "a"), before=before, after=after)


def test_two_settings_are_named_and_further_ones_counted() -> None:
    before = {"settings": {"a": "periodic", "b": 1, "c": {"d": [1]}}}
    after = {"settings": {"a": "batch", "b": 2, "c": {"d": [2]}}}
    knobs = find_knobs("config", before, after)
    assert say_settings(knobs[:2]) == "a: periodic → batch, b: 1 → 2"
    assert say_settings(knobs) == "a: periodic → batch, b: 1 → 2 and 1 more"
    assert say_settings(knobs[2:]) == "c.d: [1] → [2]"


def test_what_is_not_set_has_the_default_of_the_release_only_in_a_config() -> None:
    assert setting_values(knob("", '"batch"')) == ("not set (the release's default)", "batch")
    assert setting_values(knob("1", "", "records", file="workload")) == ("1", "not set")


def test_quotes_stay_where_the_value_could_not_be_read_without_them() -> None:
    assert setting_values(knob('"1"', "1")) == ('"1"', "1")
    assert setting_values(knob('""', '" a"')) == ('""', '" a"')
    assert setting_values(knob('"\\u001b[31m"', "null")) == ('"\\u001b[31m"', "null")


def test_a_name_and_a_value_without_end_are_cut() -> None:
    said = say_settings([knob(f'"{"x" * 10_000}"', "1", "settings", "k" * 10_000)])
    assert len(said) < 200
    assert said.endswith("x… → 1")
