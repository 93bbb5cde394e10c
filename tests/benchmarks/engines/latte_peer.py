"""latte, a load generator on the Rust driver for ScyllaDB, as a client of a comparison."""

import json
import os
import random
import shutil
import string
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from case import MEASURED_S, RECORDS, WARM_UP_S, Case, Figures

from perf.load.native_binary import native_cache
from perf.model.errors import UsageError
from perf.model.records import Operation
from perf.systems.contract import Target

_VERSION = "0.29.0"
_SCRIPT = Path(__file__).with_name("latte.rn")
_FIXED_BYTES = 88
_LIMIT_S = WARM_UP_S + MEASURED_S + 60


@dataclass(frozen=True, slots=True)
class LattePeer:
    """latte with one thread, as our engines have one core each.

    Its CPU time and its requests are those of its own report, over the measured window. What it calls
    request latency begins with the send; what it is late by it does not say.
    """

    program: Path
    directory: Path
    launcher: tuple[str, ...] = ()

    def __call__(self, case: Case, target: Target, first_row: int) -> Figures:
        """Run a case."""
        script, report = self.directory / "sensor.rn", self.directory / "report.json"
        self.directory.mkdir(exist_ok=True)
        letters = random.Random(first_row).choices(  # noqa: S311  padding, no secret
            string.ascii_letters + string.digits, k=RECORDS.payload_bytes - _FIXED_BYTES
        )
        script.write_text(_SCRIPT.read_text().replace('b"@"', f'b"{"".join(letters)}"'))
        report.unlink(missing_ok=True)
        function = "write" if case.operation is Operation.WRITE else "read"
        asked = ["--functions", function, "--consistency", "QUORUM", "--retries", "0", "--quiet"]
        asked += ["--threads", "1", "--concurrency", str(case.in_flight)]
        asked += ["--warmup", f"{WARM_UP_S:g}s", "--duration", f"{MEASURED_S:g}s"]
        asked += ["-P", f"first_sequence={first_row // RECORDS.devices}"]
        asked += ["--rate", f"{case.rate:g}"] if case.rate else []
        done = subprocess.run(
            [
                *self.launcher,
                self.program,
                "run",
                *asked,
                "--output",
                report,
                script,
                target.addresses[0],
            ],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
            cwd=self.directory,
        )
        if not report.exists():
            raise RuntimeError(f"latte failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return _read(json.loads(report.read_text())["result"])


def _read(result: dict[str, object]) -> Figures:
    requests, cpu_s, elapsed_s = (
        float(str(result[name])) for name in ("request_count", "cpu_time_s", "elapsed_time_s")
    )
    return Figures(
        cpu_us=cpu_s / requests * 1e6,
        achieved=requests / elapsed_s,
        late_ms=None,
        service_ms=None,
        failed=int(str(result["error_count"])),
    )


def make_latte(directory: Path) -> LattePeer:
    """Build latte from its published sources, once; some minutes.

    Raises:
        UsageError: there is no cargo, or latte could not be built.

    """
    root = native_cache() / f"latte-{_VERSION}"
    program = root / "bin" / "latte"
    if not program.exists():
        if shutil.which("cargo") is None:
            raise UsageError("latte is built with cargo, which is not there; install Rust")
        sys.stderr.write("building latte, once: some minutes\n")
        command = ["cargo", "install", "latte-cli", "--version", _VERSION, "--locked", "--quiet"]
        env = {**os.environ, "CARGO_TARGET_DIR": str(root / "target")}
        built = subprocess.run([*command, "--root", root], env=env, check=False)
        shutil.rmtree(root / "target", ignore_errors=True)
        if built.returncode:
            raise UsageError("latte could not be built; what cargo says stands above")
    return LattePeer(program, directory)
