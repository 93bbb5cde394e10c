"""history.yaml: what it may say, and what is said of what it may not."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from perf.history.place import S3, LakePlace, has_history, read_place, start_of_ids
from perf.local.paths import DataPaths
from perf.model.errors import ConfigError

GOOD = {"history": '"ducklake:postgres:host=db dbname=x"', "data_path": "/srv/x/", "lab": "rack-a"}
NOW = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


def write(tmp_path: Path, **values: str) -> Path:
    lines = [f"{name}: {value}" for name, value in (GOOD | values).items() if value]
    (tmp_path / "history.yaml").write_text("\n".join((*lines, "")), encoding="utf-8")
    return tmp_path / "history.duckdb"


def test_without_the_file_the_history_is_a_file(tmp_path: Path) -> None:
    paths = DataPaths(tmp_path)
    assert read_place(paths.history) is None
    assert not has_history(paths)
    assert start_of_ids(paths, "cmp-", NOW) == "cmp-2026-03-01"


def test_it_names_the_catalog_the_files_and_the_lab(tmp_path: Path) -> None:
    path = write(tmp_path, data_path="s3://bucket/x/", s3='{endpoint: "s3.example.org:9000"}')
    place = read_place(path)
    assert place == LakePlace(
        history="ducklake:postgres:host=db dbname=x",
        data_path="s3://bucket/x/",
        lab="rack-a",
        s3=S3(endpoint="s3.example.org:9000"),
    )
    assert (place.address, place.is_on_s3) == ("host=db dbname=x", True)
    assert has_history(DataPaths(tmp_path))
    assert start_of_ids(DataPaths(tmp_path), "cmp-", NOW) == "cmp-2026-03-01-rack-a"
    # What is rebuilt beside a history is a file, whatever the history is.
    assert read_place(path.with_name("history.duckdb.new")) is None


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"history": '"ducklake:sqlite:x"'}, 'history is "ducklake:sqlite:x", write for example'),
        ({"history": '"ducklake:postgres:db.example.org"'}, "not name=value"),
        ({"history": '"ducklake:postgres:host=a\'b dbname=x"'}, "not name=value"),
        ({"history": '"ducklake:postgres:hots=a dbname=x"'}, "did you mean host?"),
        ({"history": '"ducklake:postgres:host=a"'}, "without dbname=…; name the database"),
        ({"history": "7"}, "history is 7"),
        ({"data_path": "srv/x/"}, "write a whole path that ends with /"),
        ({"data_path": "/srv/x"}, "write a whole path that ends with /"),
        ({"data_path": "s3:///x/"}, "write a whole path that ends with /"),
        ({"lab": "Rack A"}, "use lower-case letters, digits and single hyphens"),
        ({"lab": ""}, "lab is missing"),
        ({"s3": "{endpoint: x}"}, "but data_path is no s3:// path"),
        ({"s3": "{url_style: round}", "data_path": "s3://b/x/"}, "s3.url_style is"),
        ({"place": "here"}, "the key place is not known"),
    ],
)
def test_what_is_wrong_is_reported_with_file_and_line(
    tmp_path: Path, values: dict[str, str], said: str
) -> None:
    path = write(tmp_path, **values)
    with pytest.raises(ConfigError) as caught:
        read_place(path)
    assert said in str(caught.value)
    assert f"{tmp_path}/history.yaml" in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {"history": '"ducklake:postgres:host=a dbname=x password=hunter2"'},
        {"history": "\"ducklake:postgres:host=a dbname=x PASSWORD = 'hunter2'\""},
        {"history": '"ducklake:postgres:host=a dbname=x sslpassword=hunter2"'},
        {"history": '"ducklake:postgres:postgresql://lab:hunter2@db/x"'},
        {"password": "hunter2"},
        {"s3": "{secret_key: hunter2}", "data_path": "s3://b/x/"},
        {"s3": "{token: hunter2, url_style: round}", "data_path": "s3://b/x/"},
    ],
)
def test_secrets_are_refused_and_never_shown(tmp_path: Path, values: dict[str, str]) -> None:
    path = write(tmp_path, **values)
    with pytest.raises(ConfigError) as caught:
        read_place(path)
    assert "no file holds secrets" in str(caught.value)
    assert "hunter2" not in str(caught.value)
