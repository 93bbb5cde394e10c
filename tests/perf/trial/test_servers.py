"""What a server's log says of why it ended, as each database writes it."""

import json

import pytest

from perf.trial.servers import find_error

CASSANDRA = """\
INFO  [main] 2026-11-23 17:46:38,890 o.a.c.config.DatabaseDescriptor:551 - DiskAccessMode is standard
concurrent_writes must be at least 2, but was 1
ERROR [main] 2026-11-23 17:46:38,892 o.a.c.service.CassandraDaemon:887 - Exception encountered during \
startup: concurrent_writes must be at least 2, but was 1
"""
CRATEDB = """\
[2026-11-23T17:46:38,890][ERROR][o.e.b.Bootstrap          ] [node-1] unknown setting [path.dat]
\tat org.elasticsearch.bootstrap.Bootstrap.init(Bootstrap.java:296)
"""
SCYLLADB = "ERROR 2026-11-23 17:46:38,890 [shard 0:main] init - Bad configuration: unknown option\n"
MONGODB = {
    "s": "F",
    "msg": "Error during global initialization",
    "attr": {"error": {"code": 2, "errmsg": "Unrecognized option: storage.no"}},
}


@pytest.mark.parametrize(
    ("log", "error"),
    [
        (
            CASSANDRA,
            "Exception encountered during startup: concurrent_writes must be at least 2, but was 1",
        ),
        (CRATEDB, "unknown setting [path.dat]"),
        (SCYLLADB, "Bad configuration: unknown option"),
        (json.dumps(MONGODB), "Error during global initialization: Unrecognized option: storage.no"),
        (json.dumps({"s": "E", "msg": "no disk", "attr": {"error": "28"}}), "no disk: 28"),
        ('{"s": "I", "msg": "an Error in passing"}', ""),
        ("{an error that is no JSON", ""),
        (json.dumps({"s": ["E"], "msg": "odd"}), ""),
        (json.dumps({"s": "F", "msg": "no room", "attr": None}), "no room"),
        ('{"s":"E","msg":' + "[" * 990, ""),
        (json.dumps({"s": "E", "msg": "\x1b[2J\u202e \ud800"}), r"\x1b[2J\u202e \ud800"),
        (
            "ERROR [m] 2026 x:1 - no heap\njava.lang.OutOfMemoryError: x\n\tat a.throwError(a:1)",
            "no heap",
        ),
        (
            "Error: Could not create the Java Virtual Machine.",
            "Error: Could not create the Java Virtual Machine.",
        ),
        ("INFO  [main] 2026-11-23 x:1 - JVM Arguments: [-XX:+ExitOnOutOfMemoryError]", ""),
        ("INFO  [m] 2026 x:1 - no peer yet\njava.net.ConnectException: Connection refused", ""),
        ("INFO  [m] 2026 x:1 - Error rate is 0", ""),
        ("started\nserving\n", ""),
        ("", ""),
    ],
)
def test_the_last_error_of_a_log_is_quoted_without_what_comes_before_its_message(
    log: str, error: str
) -> None:
    assert find_error(log) == error


def test_a_long_error_is_cut() -> None:
    assert len(find_error("ERROR " + "no room " * 100)) <= 200
