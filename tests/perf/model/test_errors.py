"""What a failed step says."""

from perf.model.errors import StepFailed


def test_a_failed_step_says_when_it_happened() -> None:
    failure = StepFailed("engine", "load-2", "it ended", "its last line")
    failure.add_when("while steady, iteration 2 was measured")
    assert (
        failure.sentence == "engine failed on load-2: it ended (while steady, iteration 2 was measured)"
    )
    assert str(failure).splitlines()[-1] == "its last line"
