"""A host whose files are its own, and a kernel that is left as it was."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_site import await_port, free_port, make_keys, run_text, write_ssh_config
from needs import need

from perf.hosts.tuning.profiles import SERVER, load_profile


@pytest.fixture
def kept_kernel() -> Iterator[None]:
    """Put each setting back that a test changed, as far as it is the kernel's."""
    settings = [
        one
        for one in load_profile(SERVER).settings
        if one.apply and re.search("/proc/|/sys/", one.apply)
    ]

    before = {one.name: run_text(one.read) for one in settings}
    try:
        yield
    finally:
        for one in settings:
            if before[one.name] and run_text(one.read) != before[one.name] and one.apply:
                run_text(one.apply, before[one.name])
        assert {one.name: run_text(one.read) for one in settings} == before


@pytest.fixture
def isolated_host(tmp_path: Path) -> Iterator[int]:
    """Yield the port of an sshd on 127.0.0.1 and .2 that sees its own /etc, /run and /usr/local."""
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    need(sshd and shutil.which("ssh"), "install openssh-server and openssh-client")
    need(os.geteuid() == 0, "tuning needs root")
    make_keys(tmp_path)
    port = free_port()
    write_ssh_config(tmp_path, ("127.0.0.1", "127.0.0.2"), port)
    (tmp_path / "sshd.conf").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nListenAddress 127.0.0.2\nHostKey {tmp_path}/host\n"
        f"AuthorizedKeysFile {tmp_path}/authorized_keys\nPidFile none\nStrictModes no\n"
        "PasswordAuthentication no\nUsePAM no\nPermitRootLogin prohibit-password\nMaxStartups 60\n"
        "Subsystem sftp internal-sftp\n"
        "SetEnv SHLVL=1\n"  # bash leaves out ~/.bashrc, which may take a minute
    )
    layers = "".join(
        f"mkdir -p {tmp_path}/up{place} {tmp_path}/aside{place}\n"
        f"mount -t overlay overlay {place} "
        f"-o lowerdir={place},upperdir={tmp_path}/up{place},workdir={tmp_path}/aside{place}\n"
        for place in ("/etc", "/run", "/usr/local")
    )
    text = f"set -e\n{layers}mkdir -p /run/sshd\nexec {sshd} -D -e -f {tmp_path}/sshd.conf\n"
    with (tmp_path / "sshd.log").open("wb") as log:
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", text]
        server = subprocess.Popen(command, stderr=log)
    try:
        await_port("127.0.0.1", port, 15)
        yield port
    finally:
        server.terminate()
        server.wait(timeout=15)
