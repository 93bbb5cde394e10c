"""The page of the method: all that is measured and said is on it, by the rules that judge."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

import re
from dataclasses import fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from chromium import watch
from markupsafe import escape
from playwright.sync_api import Browser

from perf.config.catalog import Catalog
from perf.model.design import Validity
from perf.model.metrics import DIAGNOSTICS, METRICS
from reports.pages.method.page import render_method
from reports.pages.trial.validity import RULES
from reports.wording.wording import (
    CAUSE_BADGES,
    OUTCOME_BADGES,
    STATE_BADGES,
    STATUS_BADGES,
    STEP_BADGES,
)


def text(catalog: Catalog) -> str:
    return render_method(catalog).content.decode()


def test_every_quantity_has_its_unit_and_its_definition(demo: Any) -> None:
    html = text(demo.context().catalog)
    for metric in (METRICS | DIAGNOSTICS).values():
        entry = html[html.index(f'id="metric-{metric.name}"') :].partition("</div>")[0]
        assert f"{metric.better} is better" in entry
        assert metric.unit in entry
        assert str(escape(metric.description[1:])) in entry


def test_every_badge_of_a_judgement_is_explained(demo: Any) -> None:
    html = text(demo.context().catalog)
    shown = set(re.findall(r'<span class="badge (\w+)"><span[^>]*>(.)</span>([^<]+)</span></dt>', html))
    for badges in (OUTCOME_BADGES, STATE_BADGES, STATUS_BADGES, STEP_BADGES, CAUSE_BADGES):
        assert {(one.kind, one.symbol, one.word) for one in badges.values()} <= shown


def test_the_numbers_of_the_rules_are_those_of_the_configuration(demo: Any) -> None:
    catalog = demo.context().catalog
    detection = replace(
        catalog.detection,
        max_p_value=0.00123,
        confirming_points=7,
        false_alarms_per_1000_series_nights=4.56,
        relevant_change={"throughput": 0.077},
    )
    html = text(replace(catalog, detection=detection))
    for said in ("at most 0.00123", "At least 7 points", "4.56 per 1,000", "7.7\N{NO-BREAK SPACE}%"):
        assert said in html
    testbed = catalog.testbeds["local"]
    strict = replace(testbed, validity=replace(testbed.validity, max_clock_step_ms=12.5))
    assert "local: at most 12.5 ms" in text(replace(catalog, testbeds={"local": strict}))


def test_the_page_begins_with_the_terms_and_folds_the_rest_in_three_groups(demo: Any) -> None:
    html = text(demo.context().catalog)
    terms, _, rest = html.partition("</dl>")
    assert re.findall(r"<dt><a[^>]*>([^<]+)</a></dt>", terms) == [
        *("Trial, night", "Series", "Level", "Suspected, confirmed", "Undecided"),
        *("Smallest visible change", "Saturation, steady load", "Response time, service time"),
        *("Incident", "Canary, sentinel"),
    ]
    assert re.findall(r"<h2>([^<]+)</h2>", rest) == [
        *("Reading a verdict", "How a point is made", "What can go wrong")
    ]
    assert len(re.findall(r"<summary><h3 id=", rest)) == 28
    assert "<h2 id=" not in rest


@pytest.mark.slow
def test_an_address_unfolds_what_it_leads_to(browser: Browser, demo_site: Path) -> None:
    with watch(browser, width=1280, height=800) as watched:
        watched.open(demo_site / "method.html")
        limits = watched.page.locator("#rule-max_error_share")
        assert not limits.is_visible()
        watched.open(demo_site / "method.html", "validity")
        assert limits.is_visible()
        watched.page.evaluate("location.hash = 'metric-throughput'")
        watched.page.locator("#metric-throughput").wait_for(state="visible")


def test_limits_of_a_testbed_that_no_trial_uses_are_left_out(demo: Any) -> None:
    catalog = demo.context().catalog
    other = replace(catalog.testbeds["local"], name="unused")
    both = replace(catalog, testbeds={"local": catalog.testbeds["local"], "unused": other})
    assert "unused:" not in render_method(both, {"local"}).content.decode()
    assert "unused:" in text(both)


def test_the_rules_of_validity_are_all_there(demo: Any) -> None:
    assert [rule.name for rule in RULES] == [field.name for field in fields(Validity)]
    html = text(demo.context().catalog)
    assert all(f'id="rule-{rule.name}"' in html for rule in RULES)


def test_whatever_leads_to_the_method_finds_its_heading(demo: Any) -> None:
    html = text(demo.context().catalog)
    ids = set(re.findall(r'id="([^"]+)"', html))
    asked = set()
    for template in Path(str(files("reports"))).rglob("*.html"):
        source = template.read_text()
        asked |= set(re.findall(r'method\.html#([a-z-]+)"', source))
        asked |= set(re.findall(r'parts\.why\([a-z]+, "([a-z-]+)"', source))
    assert {"validity", "smallest-visible", "watches"} <= asked
    assert asked <= ids
    assert len(re.findall(r'id="', html)) == len(set(re.findall(r'id="[^"]+"', html)))
