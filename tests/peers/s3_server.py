"""An S3 on this machine for histories too large for the one of the tests to read: moto, ranges aside.

moto reads the whole of an object for each range that is asked for, and a query asks for hundreds of
ranges of a hundred megabytes. Here a range is read from its place; all else is moto's.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from moto.s3.models import s3_backends
from werkzeug.http import parse_range_header
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

KEYS = {"AWS_ACCESS_KEY_ID": "lab", "AWS_SECRET_ACCESS_KEY": "of the benchmark only"}
BUCKET = "histories"
_App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class QuickRanges:
    """An application that answers ranges of objects itself, and leaves all else to moto."""

    def __init__(self, others: _App) -> None:
        """Take over what answers all else."""
        self._others = others

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        asked = Request(environ)
        wanted = parse_range_header(asked.headers.get("Range")) if asked.method == "GET" else None
        bucket, _, name = asked.path.lstrip("/").partition("/")
        found = _buckets().get(bucket) if wanted and name else None
        key = found.keys.get(name) if found else None
        if key is None or wanted is None:
            return self._others(environ, start)
        bounds = wanted.range_for_length(key.size)
        if bounds is None:
            return self._others(environ, start)
        begin, end = bounds
        with key.lock:
            key._value_buffer.seek(begin)  # noqa: SLF001  its `value` is a copy of the whole
            content = key._value_buffer.read(end - begin)  # noqa: SLF001
        headers = {
            "Content-Range": f"bytes {begin}-{end - 1}/{key.size}",
            "ETag": key.etag,
            "Last-Modified": key.last_modified_RFC1123,
            "Accept-Ranges": "bytes",
        }
        return Response(content, 206, headers)(environ, start)


@contextmanager
def serving_s3(address: str = "127.0.0.1") -> Iterator[str]:
    """Yield host and port of an S3 with one empty bucket, and stop it at the end."""
    app = QuickRanges(DomainDispatcherApplication(create_backend_app))
    server = make_server(address, 0, app, threaded=True, request_handler=_Silent)
    _s3().create_bucket(BUCKET, "us-east-1")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"{address}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()


def list_sizes() -> dict[str, int]:
    """Return the size of each object by its name."""
    return {name: key.size for name, key in _buckets()[BUCKET].keys.items()}


class _Silent(MotoRequestHandler):
    def log_request(self, *_: object) -> None:
        """Print no line for each of thousands of requests."""


def _s3() -> Any:  # noqa: ANN401  moto's own types say nothing
    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


def _buckets() -> dict[str, Any]:
    return dict(_s3().buckets)
