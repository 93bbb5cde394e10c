"""A real sshd on three loopback addresses, with keys of its own, for tests of hosts over SSH."""

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from needs import need

from perf.connections import SHARED
from perf.remote import SshHost

ADDRESSES = ("127.0.0.1", "127.0.0.2", "127.0.0.3")


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHost]:
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    need(program and shutil.which("ssh"), "no sshd and ssh here; install openssh-server")
    assert program is not None
    home = tmp_path_factory.mktemp("ssh")
    for key in ("host", "user"):
        make_key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / key)]
        subprocess.run(make_key, check=True)
    shutil.copy(home / "user.pub", home / "authorized_keys")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (home / "sshd.conf").write_text(
        f"Port {port}\nHostKey {home}/host\n"
        + "".join(f"ListenAddress {address}\n" for address in ADDRESSES)
        + f"AuthorizedKeysFile {home}/authorized_keys\nPidFile none\nStrictModes no\n"
        "PasswordAuthentication no\nUsePAM no\nPermitRootLogin prohibit-password\n"
    )
    public = (home / "host.pub").read_text().split(maxsplit=2)
    known = (f"[{address}]:{port} {public[0]} {public[1]}\n" for address in ADDRESSES)
    (home / "known_hosts").write_text("".join(known))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen(
        [program, "-D", "-e", "-f", str(home / "sshd.conf")], stderr=subprocess.PIPE
    )
    options = ("-i", str(home / "user"), "-o", f"UserKnownHostsFile={home}/known_hosts")
    host = SshHost("db1", "127.0.0.1", getpass.getuser(), port, options)
    try:
        end = time.monotonic() + 10
        while not is_open(port):
            assert time.monotonic() < end, "sshd did not start"
            time.sleep(0.02)
        yield host
    finally:
        SHARED.close()
        server.terminate()
        server.communicate(timeout=10)
