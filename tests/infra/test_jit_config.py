"""What asks GitHub for a runner's configuration prints that and nothing else, or says what is wrong."""

import http.server
import importlib.util
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from ansible_site import ROOT

TOKEN = "planted"  # noqa: S105  nobody's
SCRIPT = ROOT / "infra/roles/runner/files/jit_config.py"


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("jit_config", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def asked() -> list[tuple[str, dict[str, object]]]:
    return []


@pytest.fixture
def github(asked: list[tuple[str, dict[str, object]]]) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            may = self.headers["Authorization"] == f"Bearer {TOKEN}"
            known = self.path.startswith("/orgs/example/")
            self.send_response(404 if not known else 201 if may else 401)
            self.end_headers()
            self.wfile.write(b'{"encoded_jit_config": "Y29uZmln"}' if may else b"{}")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def write_settings(home: Path, api: str, scope: str = "orgs/example", token: str = TOKEN) -> Path:
    (home / "token").write_text(f"{token}\n")
    settings = {
        "api": api,
        "scope": scope,
        "name": "rack",
        "runner_group_id": 3,
        "labels": ["knickpoint"],
        "token_file": str(home / "token"),
    }
    (home / "settings.json").write_text(json.dumps(settings))
    return home / "settings.json"


def test_prints_one_configuration_of_a_runner_with_a_name_of_its_own(
    tmp_path: Path,
    script: ModuleType,
    github: str,
    asked: list[tuple[str, dict[str, object]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = write_settings(tmp_path, github)
    assert [script.main(settings), script.main(settings)] == [0, 0]
    assert capsys.readouterr() == ("Y29uZmln\nY29uZmln\n", "")
    assert {path for path, _ in asked} == {"/orgs/example/actions/runners/generate-jitconfig"}
    names = [str(body.pop("name")) for _, body in asked]
    assert len(set(names)) == 2
    assert all(name.startswith("rack-") for name in names)
    assert asked[0][1] == {"runner_group_id": 3, "labels": ["knickpoint"], "work_folder": "_work"}


def test_says_what_is_wrong_and_never_the_token(
    tmp_path: Path, script: ModuleType, github: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = {
        "401, the token is not valid": {"token": "ended"},
        "404, there is no such repository, organisation": {"scope": "orgs/other"},
    }
    for words, change in cases.items():
        assert script.main(write_settings(tmp_path, github, **change)) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert words in err
        assert TOKEN not in err
    (tmp_path / "token").unlink()
    assert script.main(tmp_path / "settings.json") == 1
    assert "no runner configuration: FileNotFoundError" in capsys.readouterr().err
