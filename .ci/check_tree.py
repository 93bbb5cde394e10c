"""Lint what no linter knows: sizes, names, and whether the documentation says what the code has.

Run by `make lint`. Prints each finding as `file:line: what`, and ends with 1 if there is one.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import reference

from perf.model.errors import KnickpointError
from perf.model.metrics import DIAGNOSTICS, METRICS
from perf.model.results import Purpose, StepOutcome, TrialStatus

ROOT = Path(__file__).parents[1]
PACKAGES = ("perf", "analysis", "reports")
PURE = (
    "perf/model", "perf/workloads",
    "analysis/judging", "analysis/bisecting", "analysis/comparing", "analysis/detection",
)  # fmt: skip
"""What these import is held by contracts in pyproject.toml; but a path reads without an import."""
IMPURE = {"read_text", "write_text", "read_bytes", "write_bytes", "open", "now", "today", "time"}
READS_PACKAGE_DATA = {Path("perf/workloads/devops/tables.py")}
MAX_FILE_LINES = 700
MAX_FUNCTION_LINES = 60
VAGUE = {"utils", "helpers", "common", "manager", "misc", "base"}
WORDS = """
system, release, line, topology, testbed, workload, config, experiment, suite, trial, phase, iteration,
operation, sample, metric, series, point, change point, incident, baseline, candidate, noise floor,
minimum detectable effect, verdict, probe, culprit, canary, sentinel, offered load, throughput,
response time, service time, open loop, closed loop, saturation, steady, night, bundle, history,
suspected change, confirmed, significant, relevant, warm-up, counter, histogram, engine, artifact,
purpose,
regressed, improved, unchanged, undecided, send lateness, stage, ladder, search, load step,
client-limited, diagnostic, remark, foreign cpu, null server, self-test, intended start, highest
load, mix
"""
SPOKEN = ("*.md", "reports/**/*.html", ".github/**/*.yml")
HISTORIC = {"CHANGELOG.md"}
DIALECT = {
    r"told": "reported",
    r"(?<!cannot\s)(?<!(?:early|small)\sto\s)(?<!points\sto\s)tells?": "says, shows, reports",
    r"telling": "reporting",
    r"mended": "resolved, fixed",
    r"of ours": "Knickpoint's",
    r"in turns": "interleaved",
    r"teach(es)? most": "most informative",
    r"put down to": "attributed to",
    r"for ever": "hangs",
    r"nobody (can|knows|vouches|looks)": "it is unknown",
    r"is said, with|all of it is said|that is said": "is reported",
    r"no time was left": "skipped",
    r"does not let us in": "refused the connection",
    r"shouts?": "alerts",
    r"vouch(es)?": "guarantees",
    r"what is relied on": "assumptions",
    r"rivals?": "confounder",
    r"circumstances": "environment",
}
"""Words that only Knickpoint used in that way, and what is said in their place."""


def main() -> int:
    """Print all findings; return 1 if there is one."""
    findings = [
        *_check_code(), *_check_purity(), *_check_words(), *_check_tables(), *_check_links(),
        *_check_reference(), *_check_dialect(), *_check_paths(), *_check_dates(),
    ]  # fmt: skip
    for finding in findings:
        print(finding)  # noqa: T201  a program
    return 1 if findings else 0


def _tracked(pattern: str) -> list[Path]:
    listed = subprocess.run(  # noqa: S603  fixed words
        ["git", "ls-files", "-co", "--exclude-standard", pattern],  # noqa: S607
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file()]


def _check_code() -> Iterator[str]:
    """Find files and functions that are too large, and names and strings that say nothing."""
    for path in _tracked("*.py"):
        name = path.relative_to(ROOT)
        code = path.read_text()
        lines, tree = code.splitlines(), ast.parse(code)
        if len(lines) > MAX_FILE_LINES:
            yield f"{name}:1: {len(lines)} lines; more than {MAX_FILE_LINES} are not one thought"
        if name.parts[0] in PACKAGES and path.stem in VAGUE:
            yield f"{name}:1: the name does not say what belongs in it"
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = (node.end_lineno or 0) - node.lineno + 1
                if size > MAX_FUNCTION_LINES:
                    yield f"{name}:{node.lineno}: {node.name} has {size} lines"
            elif _is_stray(node, lines):
                yield f"{name}:{node.lineno}: a string that nothing uses; is a parenthesis missing?"
            elif _is_patch_by_string(node):
                yield f"{name}:{node.lineno}: patches nothing once the name moves; pass a fake in"
        is_lifecycle = name.match("perf/systems/*/system.py") or name.match("perf/systems/*.py")
        if is_lifecycle and name.parts[0] == "perf" and name.parts[2] != "fake":
            yield from _check_patience(name, tree)


def _is_stray(node: ast.AST, lines: list[str]) -> bool:
    """Whether a string stands alone: `a = 1, "one "` and on the next line `"two"`; docstrings may."""
    if not isinstance(node, ast.Expr):
        return False
    value = node.value
    is_text = isinstance(value, ast.JoinedStr) or (
        isinstance(value, ast.Constant) and isinstance(value.value, str)
    )
    return is_text and not lines[node.lineno - 1].lstrip().startswith(('"""', 'r"""'))


def _is_patch_by_string(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)):
        return False
    return _called(node) == "patch" and isinstance(node.args[0].value, str)


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _check_purity() -> Iterator[str]:
    """Find calls in pure rooms that read or write a file, or ask a clock."""
    for path in _tracked("*.py"):
        name = path.relative_to(ROOT)
        if name in READS_PACKAGE_DATA or not any(map(name.is_relative_to, PURE)):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and _called(node) in IMPURE:
                yield f"{name}:{node.lineno}: {_called(node)}() in a pure room; hand the value in"


def _check_patience(name: Path, tree: ast.AST) -> Iterator[str]:
    """Find clocks and threads in a database: one that waits by itself is treated unlike the others."""
    forbidden = {"time", "threading", "asyncio", "concurrent", "print", "sleep"}
    for node in ast.walk(tree):
        names = set()
        if isinstance(node, ast.Name):
            names = {node.id}
        elif isinstance(node, ast.Import):
            names = {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {node.module.split(".")[0]}
        for found in names & forbidden:
            yield f"{name}:{node.lineno}: {found}: the harness owns clocks, threads and output"


def _check_words() -> Iterator[str]:
    """Find words and metrics that the glossary does not explain, and words that it explains twice."""
    text = (ROOT / "docs/glossary.md").read_text()
    entries = Counter(word.lower() for word in re.findall(r"\*\*([^*]+)\*\*", text))
    for word in (word for word, times in entries.items() if times > 1):
        yield f"docs/glossary.md:1: explains **{word}** twice; one word has one meaning"
    for word in (" ".join(word.split()) for word in WORDS.split(",")):
        if word not in entries:
            yield f"docs/glossary.md:1: does not explain **{word}**"
    for kind in (*TrialStatus, *StepOutcome, *Purpose):
        if kind.value not in text.lower():
            yield f"docs/glossary.md:1: does not explain {kind.value}"
    for metric in (*METRICS.values(), *DIAGNOSTICS.values()):
        if f"`{metric.name}`" not in text:
            yield f"docs/glossary.md:1: does not explain the metric `{metric.name}`"


def _check_tables() -> Iterator[str]:
    """Find configuration files, import contracts and exit codes that the docs leave out."""
    name = "docs/architecture.md"
    text = (ROOT / name).read_text()
    for path in (ROOT / "configs").rglob("*.yaml"):
        folder, *inside = path.relative_to(ROOT / "configs").with_suffix("").parts
        if inside and f"`{'/'.join(inside)}`" not in text:
            yield f"{name}:1: does not list {folder}/{'/'.join(inside)}"
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    for contract in tools["importlinter"]["contracts"]:
        if f"- {contract['name']}.\n" not in text:
            yield f"{name}:1: does not name the import contract: {contract['name']}"
    errors = [KnickpointError]
    for error in errors:
        errors.extend(error.__subclasses__())
    for code in {error.exit_code for error in errors}:
        if f"| {code} | " not in text:
            yield f"{name}:1: does not explain exit code {code}"


def _check_links() -> Iterator[str]:
    """Find relative links of the documentation that lead to no file, or to no heading of it."""
    for page in _tracked("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            inside, _, anchor = target.partition("#")
            there = (page.parent / inside).resolve() if inside else page
            if not there.exists() or not there.is_relative_to(ROOT):
                yield f"{page.relative_to(ROOT)}:1: {target} leads nowhere"
            elif anchor and anchor not in _slugs(there):
                yield f"{page.relative_to(ROOT)}:1: {target}: no such heading"


def _check_reference() -> Iterator[str]:
    """Find pages of the generated reference that the code has left behind."""
    for name, text in reference.pages().items():
        path = reference.PAGES / name
        if not path.is_file() or path.read_text() != text:
            yield f"docs/reference/{name}:1: is stale; write it with: make reference"


def _check_dialect() -> Iterator[str]:
    """Find words that a reader would have to learn, in docs, help, pages, workflows and messages."""
    pages = (page for pattern in SPOKEN for page in _tracked(pattern))
    texts = {page.relative_to(ROOT): _prose(page) for page in pages}
    texts = {name: text for name, text in texts.items() if name.name not in HISTORIC}
    texts |= {Path(name): text for name, text in reference.help_texts().items()}
    for package in PACKAGES:
        for code in _tracked(f"{package}/**/*.py"):
            texts[code.relative_to(ROOT)] = _messages(ast.parse(code.read_text()))
    for name, text in texts.items():
        for word, better in DIALECT.items():
            spaced = word.replace(" ", r"\s+")
            for found in re.finditer(rf"(?<![\w-]){spaced}(?![\w-])", text, re.IGNORECASE):
                line = text.count("\n", 0, found.start()) + 1
                yield f"{name}:{line}: {found[0]!r}: plainer is: {better}"


def _messages(tree: ast.Module) -> str:
    """Return the strings of a module that are sentences, each on its line, without docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    lines: dict[int, str] = {}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            text = " ".join(node.value.split())
            if " " in text:
                lines[node.lineno] = f"{lines.get(node.lineno, '')} {text}"
    return "\n".join(lines.get(line, "") for line in range(1, max(lines, default=0) + 1))


def _check_paths() -> Iterator[str]:
    """Find names of files of the packages, in comments and docs, that do not exist."""
    named = re.compile(
        r"(?<![\w./-])(?:perf|analysis|reports)/[a-z_/]*\.(?:py|html|js|css|yaml|json)\b"
    )
    for pattern in ("*.py", "*.rs", "*.md", "*.yaml", "*.yml", "*.toml", "Makefile"):
        for page in _tracked(pattern):
            name = page.relative_to(ROOT)
            if name.name in HISTORIC:
                continue
            text = page.read_text()
            for found in named.finditer(text):
                if not (ROOT / found[0]).exists():
                    line = text.count("\n", 0, found.start()) + 1
                    yield f"{name}:{line}: names {found[0]}, which is not there"


def _check_dates() -> Iterator[str]:
    """Find figures with an n where neither section nor introduction of the page names a day."""
    for page in (ROOT / "docs").glob("*.md"):
        introduction, *sections = re.split(r"^(?=##+ )", _prose(page), flags=re.MULTILINE)
        day = re.compile(r"\b20\d\d-\d\d-\d\d\b|not dated")
        for section in sections:
            if re.search(r"\bn = \d", section) and not day.search(introduction + section):
                heading = section.partition("\n")[0]
                yield f"docs/{page.name}:1: {heading!r} has figures without the day they were measured"


def _prose(page: Path) -> str:
    """Return a page without code, addresses of links, tags and Jinja, each line in its place."""
    code = r"```.*?```|`[^`\n]+`|\]\([^)\s]*\)"
    if page.suffix == ".html":
        code = r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>"
    return re.sub(code, lambda found: "\n" * found[0].count("\n"), page.read_text(), flags=re.DOTALL)


def _slugs(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


if __name__ == "__main__":
    sys.exit(main())
