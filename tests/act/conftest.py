"""A GitHub on this machine with a repository, and a runner that runs its workflows."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import events
import pytest
from act_runner import ACT, Done, Runner
from actions_server import Forge, serve_forge
from github_server import TOKEN
from needs import need
from origin import Origin

RunnerMaker = Callable[..., Runner]


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    """Return the repository; what a test proposes to it, it proposes anew."""
    need(ACT.exists(), "no act here; install the development packages")
    return Origin(tmp_path_factory.mktemp("origin"))


@pytest.fixture(scope="session")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment that `make setup` finds made: the one that runs the tests.

    Its mark is newer than any file can be, so nothing is ever installed into it.
    """
    made = tmp_path_factory.mktemp("environment")
    for part in Path(sys.prefix).iterdir():
        if part.name not in {".ready", ".dev"}:
            (made / part.name).symlink_to(part)
    (made / ".ready").touch()
    os.utime(made / ".ready", (4_000_000_000, 4_000_000_000))
    return made


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    """Serve GitHub's interface, with nothing said yet."""
    store = tmp_path / "store"
    store.mkdir()
    with serve_forge(Forge(store=store)) as forge:
        yield forge


@pytest.fixture
def make_runner(tmp_path: Path, origin: Origin, forge: Forge, ready: Path) -> RunnerMaker:
    """Give `make_runner(is_prepared=True)`: with a made environment, or one that jobs have to make."""

    def make(*, is_prepared: bool = True) -> Runner:
        return Runner(
            place=tmp_path / "runner",
            repository=origin.work,
            origin=origin.bare,
            store=forge.store,
            api_url=forge.url,
            token=TOKEN,
            data=tmp_path / "data",
            environment=ready if is_prepared else None,
        )

    return make


@pytest.fixture
def report(make_runner: RunnerMaker) -> Callable[..., Done]:
    """Return `tell(run, head, **changes)`: `comment`, after that run of `candidate` on that head."""

    def report(run: int, head: str, **changes: str) -> Done:
        title = changes.pop("display_title", f"candidate of pull request 7 at {head}")
        return make_runner().run(
            "comment.yml",
            "workflow_run",
            events.workflow_run(run, title, **changes),
            variables={"KNICKPOINT_SITE_URL": "https://perf.example/site"},
        )

    return report
