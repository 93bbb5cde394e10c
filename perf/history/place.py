"""Where the history of a data directory is kept: in a file, or where `history.yaml` beside it says.

    history: "ducklake:postgres:host=db.example.org dbname=knickpoint user=lab"   the catalog
    data_path: s3://bucket/knickpoint/          or a directory that every lab sees: /srv/knickpoint/
    lab: rack-a                                 part of every trial id: two labs never share one
    s3: {endpoint: "storage.example.org:9000", url_style: path}                   for s3:// only

Secrets are in no file: PGPASSWORD or PGPASSFILE, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import StringConstraints, TypeAdapter, ValidationError

from perf.local.document import YamlDocument, read_document
from perf.local.paths import DataPaths
from perf.local.problems import Place, describe, suggest
from perf.model.errors import ConfigError
from perf.model.scalars import STRICT, Name, Text

Plain: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=1000)]

FORM = "ducklake:postgres:"
_EXAMPLE = f'"{FORM}host=db.example.org dbname=knickpoint user=lab"'
_WORD = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<value>'(?:[^'\\]|\\.)*'|[^\s'\\]+)(?=\s|$)")
_NAMES = frozenset(
    {
        *("application_name", "channel_binding", "connect_timeout", "dbname", "gssencmode", "host"),
        *("hostaddr", "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval"),
        *("passfile", "port", "service", "sslcert", "sslcrl", "sslkey", "sslmode", "sslrootcert"),
        *("target_session_attrs", "tcp_user_timeout", "user"),
    }
)
_SECRETS = {"sslpassword": "a key file without one", "password": "PGPASSWORD or PGPASSFILE"}
_IN_ENVIRONMENT = (
    "PGPASSWORD or PGPASSFILE, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3:
    """How to reach an S3 that is not Amazon's. The keys are in the environment."""

    __pydantic_config__ = STRICT
    endpoint: Text | None = None
    region: Text | None = None
    url_style: Literal["path", "vhost"] = "vhost"
    use_ssl: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LakePlace:
    """One history for several labs: its catalog in PostgreSQL, its Parquet files under a path."""

    __pydantic_config__ = STRICT
    history: Plain
    data_path: Plain
    lab: Name
    s3: S3 | None = None

    @property
    def address(self) -> str:
        """How libpq finds the catalog; without a password."""
        return self.history.removeprefix(FORM)

    @property
    def is_on_s3(self) -> bool:
        """Whether the Parquet files are in a bucket."""
        return self.data_path.startswith("s3://")


_PLACE = TypeAdapter(LakePlace)


def lake_file(history: Path) -> Path:
    """Return the file that says that a history is not kept in its own file: history.yaml beside it."""
    return history.with_suffix(".yaml")


def read_place(history: Path) -> LakePlace | None:
    """Read where the history is kept; None where nothing is said: then it is the file itself.

    Raises:
        ConfigError: the file is wrong; it names each field, its value and what to write instead.

    """
    path = lake_file(history)
    if not os.path.lexists(path):  # a link that leads nowhere is no reason to write elsewhere
        return None
    document = read_document(path)
    problems = [*document.problems, *_find_secrets(document)]
    if not problems:
        try:
            place = _PLACE.validate_json(json.dumps(document.tree))
        except ValidationError as error:
            shape = _PLACE.json_schema()
            problems += describe(document, shape, error.errors(include_url=False))
        else:
            problems += _check(Place(document), place)
            if not problems:
                return place
    raise ConfigError(problems)


def has_history(paths: DataPaths) -> bool:
    """Return whether a data directory has a history: a file, or a part in one of several labs."""
    return paths.history.exists() or os.path.lexists(lake_file(paths.history))


def start_of_ids(paths: DataPaths, kind: str, now: datetime) -> str:
    """Return what all ids of this day begin with: kind, day and, in a history of several labs, the lab.

    Raises:
        ConfigError: history.yaml is wrong.

    """
    place = read_place(paths.history)
    return f"{kind}{now:%Y-%m-%d}" + (f"-{place.lab}" if place else "")


def _find_secrets(document: YamlDocument) -> Iterator[str]:
    """Find passwords and keys, whose values no message may show."""
    tree = document.tree if isinstance(document.tree, dict) else {}
    of_s3 = tree.get("s3")
    keys = [(key,) for key in tree]
    nested = [("s3", key) for key in of_s3] if isinstance(of_s3, dict) else []
    for steps in (*keys, *nested):
        if re.search("password|secret|key|token", steps[-1], re.IGNORECASE):
            yield _say_secret(document, steps, ".".join(steps), _IN_ENVIRONMENT)
    address = tree.get("history")
    if not isinstance(address, str):
        return
    for name, instead in _SECRETS.items():
        if re.search(rf"\b{name}\s*=", address, re.IGNORECASE):
            yield _say_secret(document, ("history",), f"{name} in history", instead)
    if re.search(r"://[^/@]*:[^/@]*@", address):
        yield _say_secret(document, ("history",), "the password in history", _SECRETS["password"])


def _say_secret(document: YamlDocument, steps: tuple[str, ...], what: str, instead: str) -> str:
    return (
        f"{document.locate(steps)}: {what} is a secret, and no file holds secrets; remove it from here "
        f"and use {instead}"
    )


def _check(at: Place, place: LakePlace) -> Iterator[str]:
    """Check each value by itself, and S3's settings against the path."""
    yield from _check_address(at / "history", place)
    if not re.match(r"(/|s3://[^/]+/).*", place.data_path) or not place.data_path.endswith("/"):
        why = "write a whole path that ends with /: /srv/knickpoint/ or s3://bucket/knickpoint/"
        yield (at / "data_path").say(why)
    if place.s3 is not None and not place.is_on_s3:
        yield (at / "s3").say("but data_path is no s3:// path; remove one of them")


def _check_address(at: Place, place: LakePlace) -> Iterator[str]:
    if not place.history.startswith(FORM):
        yield at.say(f"write for example {_EXAMPLE}")
        return
    rest, names = place.address, set[str]()
    while rest.strip():
        word = _WORD.match(rest)
        if word is None:
            why = f"which is not name=value name=value …; write for example {_EXAMPLE}"
            yield at.say(why)
            return
        names.add(word["name"])
        rest = rest[word.end() :]
    for name in sorted(names - _NAMES):
        why = f"where {name} is nothing that can be set; {suggest(name, _NAMES)}"
        yield at.say(why)
    if not names & {"dbname", "service"}:
        yield at.say("without dbname=…; name the database")
