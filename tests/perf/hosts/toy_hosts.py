"""Hosts in directories: settings are files there, profiles are toys, the kernel is left alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perf.hosts.remote import Completed, LocalHost
from perf.hosts.tuning.privileged import PROGRAM
from perf.model.design import Host, Testbed
from perf.model.errors import StepFailed

PROFILES = {
    "client": ("", {"clock": "steady"}, ()),
    "server": ("client", {"memory": "1", "disk": "xfs"}, ("disk",)),
    "eager": ("server", {"memory": "2"}, ()),
}


def write_profiles(root: Path) -> None:
    """Write toy profiles: `eager` wants another memory than `server`; a disk is made by hand."""
    root.mkdir()
    for name, (extends, settings, by_hand) in PROFILES.items():
        lines = [f"name: {name}", "description: a toy", *([f"extends: {extends}"] if extends else [])]
        lines.append("settings:")
        for setting, value in settings.items():
            lines += [
                f"  - name: {setting}",
                f'    value: "{value}"',
                f"    read: cat $work_dir/{setting}",
                f"    by_hand: buy a {setting}"
                if setting in by_hand
                else f"    apply: echo $value >$work_dir/{setting}",
                f"    reason: the {setting} matters",
                "    source: a toy",
            ]
        (root / f"{name}.yaml").write_text("\n".join(lines) + "\n")


@dataclass(slots=True)
class ToyHost(LocalHost):
    """A host in a directory of its own; `commands` are those that it was asked to run."""

    directory: Path = Path()
    is_root: bool = True
    is_up: bool = True
    program: str = ""
    """What stands in /usr/local/sbin/knickpoint-tune there; sudo refuses if it is empty."""
    commands: list[tuple[str, ...]] = field(default_factory=list)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 60.0,
        stdin: str | None = None,
        check: bool = True,
    ) -> Completed:
        self.commands.append(tuple(argv))
        if not self.is_up:
            raise StepFailed(argv[0], self.name, "no route to host")
        text, words = stdin, list(argv)
        if argv[:3] == ["sudo", "-n", PROGRAM]:
            if not self.program:
                return Completed(1, "", "sudo: a password is required\n")
            text, words = self.program, ["sh", "-s", "--", *argv[3:]]
        moved = None if text is None else text.replace("/run/knickpoint", f"{self.directory}/run")
        if moved is not None and not self.is_root:
            moved = moved.replace("$(id -u)", "1000")
        return LocalHost.run(self, words, timeout_s=timeout_s, stdin=moved, check=check)

    @property
    def marker(self) -> str:
        path = self.directory / "run/tuning"
        return path.read_text().strip() if path.exists() else ""

    def write(self, settings: Mapping[str, str]) -> None:
        for name, value in settings.items():
            (self.directory / name).write_text(f"{value}\n")

    def settings(self) -> dict[str, str]:
        return {
            path.name: path.read_text().strip() for path in self.directory.iterdir() if path.is_file()
        }


def make_hosts(root: Path) -> dict[str, ToyHost]:
    """Make two servers and a client, with nothing tuned but the disks."""
    hosts = {name: ToyHost(name=name, directory=root / name) for name in ("db1", "db2", "load1")}
    for host in hosts.values():
        host.directory.mkdir()
        host.write({"clock": "unsteady"})
        if host.name != "load1":
            host.write({"memory": "60", "disk": "xfs"})
    return hosts


def list_hosts(root: Path) -> tuple[Host, ...]:
    """Return the same as hosts of a testbed over SSH."""
    return tuple(
        Host(
            name=name,
            address=f"192.0.2.{number}",
            role="client" if name == "load1" else "server",
            work_dir=str(root / name),
        )
        for number, name in enumerate(("db1", "db2", "load1"), start=1)
    )


def open_toys(hosts: Mapping[str, ToyHost]):  # noqa: ANN201  the same as deployment.open_host
    """Return what opens these hosts by name, in place of SSH."""

    def open_host(_: Testbed, host: Host) -> ToyHost:
        return hosts[host.name]

    return open_host
