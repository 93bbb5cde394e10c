"""Links to old trials lead to their places, and no other text is touched."""

from perf.model.results import TrialId
from reports.site.leading import lead_all
from reports.site.writing import Batch, LazyBatches, SiteFile, batch_of, flatten

OLD, NEW = TrialId("2026-03-01-1.01.write.5.0.1"), TrialId("2026-03-02-1.01.write.5.0.1")
OLD_TRIALS = {OLD: f"night/2026-03-01-1.html#{OLD}"}


def lead(path: str, text: str) -> str:
    (batch,) = lead_all([batch_of(SiteFile(path, text.encode()))], OLD_TRIALS)
    assert isinstance(batch, Batch)
    (file,) = batch.make({path})
    return file.content.decode()


def test_pages_and_data_link_the_place_of_an_old_trial() -> None:
    for before in ("", "../"):
        link = f'<a href="{before}{{}}">'
        expected = link.format(OLD_TRIALS[OLD])
        assert lead("a.html", link.format(f"trials/{OLD}.html")) == expected
    assert lead("a.js", f'{{"page":"trials/{OLD}.html"}}') == f'{{"page":"{OLD_TRIALS[OLD]}"}}'


def test_new_trials_bundles_texts_and_files_for_others_stay_as_they_are() -> None:
    for text in (
        f'<a href="trials/{NEW}.html">',
        f'<a href="../../trials/{OLD}/trial.json">',
        f'<a href="../../trials/{OLD}/logs/a.html">',
        f"trials/{OLD}.html lies no more",
    ):
        assert lead("a.html", text) == text
    assert lead("a.json", f'"trials/{OLD}.html"') == f'"trials/{OLD}.html"'


def test_what_is_found_late_is_led_too_and_versions_are_kept() -> None:
    one = Batch({"a.html": "7"}, lambda _: [SiteFile("a.html", f'"trials/{OLD}.html"'.encode(), "of")])
    (lazy,) = lead_all([LazyBatches(1, lambda: [one])], OLD_TRIALS)
    (batch,) = flatten([lazy])
    assert (batch.versions, list(batch.make({"a.html"}))) == (
        {"a.html": "7"},
        [SiteFile("a.html", f'"{OLD_TRIALS[OLD]}"'.encode(), "of")],
    )
