"""The documents say what the code has: commands, metrics, words, files, configurations, links."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

from perf.errors import KnickpointError
from perf.metrics import DIAGNOSTICS, METRICS, Better, Metric
from perf.model import Purpose, StepOutcome, TrialStatus

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        ".github/**/*.md",
        "docs/**/*.md",
        "infra/**/*.md",
        "requirements/*.md",
        "tests/**/*.md",
    )
    for path in ROOT.glob(pattern)
)
TEMPLATES = sorted((ROOT / "reports/templates").iterdir())
GLOSSARY = (ROOT / "docs/glossary.md").read_text()
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()

WORDS = """
system, release, line, topology, testbed, workload, config, experiment, suite, trial, phase, iteration,
operation, sample, metric, series, point, change point, incident, baseline, candidate, noise floor,
minimum detectable effect, verdict, probe, culprit, canary, sentinel, offered load, throughput,
response time, service time, open loop, closed loop, saturation, steady, night, bundle, history,
provisional, confirmed, significant, relevant, warm-up, counter, histogram, engine, artifact, purpose,
invalid, failed, regressed, improved, unchanged, undecided, send lateness, held, stage, ladder, search,
load step, missed, client-limited, diagnostic, remark, look, window, foreign cpu, null server,
self-test, intended start, highest load, mix, lane, book, all, course, beginning
"""
# Classes whose names are words of the glossary, by the module that defines them.
CLASSES = {
    "perf.design": "Topology Testbed Workload Experiment Suite OpenLoop ClosedLoop",
    "perf.records": "Operation",
    "perf.load.spec": "Stage",
    "perf.model": "Release Artifact Sample Counter LoadStep Trial Purpose",
    "perf.metrics": "Metric",
    "perf.telemetry": "Look Window",
    "perf.night": "Night",
    "analysis.series": "Point Series",
    "analysis.detection": "ChangePoint Detector",
    "analysis.comparison": "Effect",
    "analysis.verdict": "Verdict",
}


def entries() -> set[str]:
    """Give the words that the glossary explains, in lower case and without their marks."""
    found = re.findall(r"\*\*([^*]+)\*\*", GLOSSARY)
    return {word.strip('"').lower() for word in found}


@pytest.mark.parametrize("word", [" ".join(word.split()) for word in WORDS.split(",")])
def test_glossary_explains_the_word(word: str) -> None:
    assert word in entries()


def test_glossary_explains_the_classes_that_carry_its_words() -> None:
    for module, names in CLASSES.items():
        members = vars(importlib.import_module(module))
        for name in names.split():
            assert members[name].__module__ == module
            assert re.sub(r"(?<=.)([A-Z])", r" \1", name).lower() in entries(), name


def test_glossary_knows_each_status_outcome_and_purpose() -> None:
    text = GLOSSARY.lower()
    assert [
        word.value for word in (*TrialStatus, *StepOutcome, *Purpose) if word.value not in text
    ] == []


@pytest.mark.parametrize(
    "command", sorted(e.name for e in importlib.metadata.entry_points(group="knickpoint.commands"))
)
def test_each_command_is_explained(command: str) -> None:
    assert re.search(rf"^\| `{command}` \|", ARCHITECTURE, flags=re.MULTILINE), command


@pytest.mark.parametrize(
    "metric", [*METRICS.values(), *DIAGNOSTICS.values()], ids=lambda metric: metric.name
)
def test_each_metric_is_explained_and_has_a_direction(metric: Metric) -> None:
    assert f"`{metric.name}`" in GLOSSARY
    assert metric.better in Better


@pytest.mark.parametrize(
    "path",
    sorted(path for path in (ROOT / "configs").rglob("*.yaml") if path.parent != ROOT / "configs"),
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_each_configuration_is_in_the_table(path: Path) -> None:
    inside = path.relative_to(ROOT / "configs")
    row = next(
        line for line in ARCHITECTURE.splitlines() if line.startswith(f"| `{inside.parts[0]}/` |")
    )
    assert f"`{'/'.join(inside.parts[1:]).removesuffix('.yaml')}`" in row


@pytest.mark.parametrize("package", ["perf", "analysis", "reports"])
def test_architecture_lists_the_files_that_exist(package: str) -> None:
    section = ARCHITECTURE.split(f"### `{package}/`")[1].split("\n##")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`([\w/]+\.py)`", row)}
    folder = ROOT / package
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")}
    assert listed == {name for name in there if not name.endswith("__init__.py")}


def test_architecture_names_each_import_contract() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    names = [contract["name"] for contract in tools["importlinter"]["contracts"]]
    assert [name for name in names if f"- {name}.\n" not in ARCHITECTURE] == []


def test_architecture_explains_each_exit_code_of_an_error() -> None:
    errors = [KnickpointError]
    for error in errors:
        errors.extend(error.__subclasses__())
    codes = {error.exit_code for error in errors}
    assert {code for code in codes if f"| {code} | " not in ARCHITECTURE} == set()


def slugs(page: Path) -> set[str]:
    """Give the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), target
        assert there.is_relative_to(ROOT), target
        if anchor:
            assert anchor in slugs(there), target


@pytest.mark.parametrize("page", [*PAGES, *TEMPLATES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_page_calls_a_measured_quantity_latency(page: Path) -> None:
    # In quotes or code it is somebody else's word, and may be explained.
    text = re.sub(r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”", "", page.read_text(), flags=re.DOTALL)
    assert re.findall(r"(?i)\blatenc(?:y|ies)\b", text) == []
