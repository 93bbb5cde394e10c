"""What a report's suites measure has a place on the report's page."""

import pytest
from catalogs import shipped

from perf.model.references import cells


@pytest.mark.parametrize("suite", ["devops", "iot", "put-get", "storage"])
def test_each_workload_of_a_suite_is_in_a_table_or_a_course_of_its_report(suite: str) -> None:
    catalog = shipped()
    (report,) = (one for one in catalog.reports if one.suite == suite)
    measured = {one.workload for name in report.suites for one in catalog.suite(name).experiments}
    assert measured <= report.workloads()


def test_words_about_consistency_all_stand_where_its_ratio_is_and_are_no_number() -> None:
    (report,) = (one for one in shipped().reports if one.suite == "iot")
    (table,) = (one for one in report.tables if one.name == "consistency")
    names = [one.name for one in table.columns]
    reported = [row for row in table.rows if row.name.endswith("-p99")]
    assert [row.words["ratio-all"] for row in reported] == ["2-3x (statistic not said)"] * 2
    assert {row.values[names.index("ratio-all")] for row in table.rows} == {None}
    spots = {spot.workload for _, column, spot in cells(table) if column.name == "all"}
    assert spots == {"iot-write-all"}
