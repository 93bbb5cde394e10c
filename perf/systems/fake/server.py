"""A server of the fake system: `python -m perf.systems.fake.server CONFIG`.

Its settings plant faults:

    service_time_ms: 2        every answer is held back for so long
    never_ready: true         runs, but its port answers "starting" to every check
    ready_after_s: 3          does so for so long
    crash_on_start: true      the process ends at once with a message in its log
    runs: 9.9.9               tells this version, whichever release was deployed
    die_after_writes: 500     node 1 dies after so many writes
    lose_every: 100           every 100th write is acknowledged and not stored
    corrupt_every: 100        every 100th write is stored with changed values
    refuse_every: 100         every 100th write is answered with an error
    refuse_after: 500         every write after so many is, as by a full disk or a revoked account
    refuse_with: no space     what such an answer says
    ignore_stop: true         SIGTERM does nothing; only a kill ends the process
"""

import asyncio
import json
import math
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perf.systems.fake.devops import DevopsRows
from perf.systems.fake.keys import KeptRecords

PORT = 17_999
_FIXED_BYTES = 16 + 8 + 8 * 8  # device id, timestamp, values: as the workload counts them


class FakeServer:
    """One node: a dict of device → {timestamp: row}, records, and the faults it was told to have."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Hold nothing yet; `settings` are those of the module's docstring, with `index`."""
        self.settings = settings
        self.devices: dict[str, dict[int, list[Any]]] = {}
        self.records = KeptRecords()
        self.devops = DevopsRows()
        self.writes = 0
        self.is_up = not settings.get("ready_after_s")

    def finish_start(self) -> None:
        """Serve from now on: a start that was told to be slow is over."""
        self.is_up = True

    def _is_hit(self, fault: str) -> bool:
        every = self.settings.get(fault)
        return every is not None and self.writes % int(every) == 0

    def answer(self, question: dict[str, Any]) -> Any:  # noqa: ANN401  JSON
        """Answer one question of a client."""
        if "ready" in question:
            return self.is_up and not self.settings.get("never_ready", False)
        if "version" in question:
            return self.settings.get("runs", "")
        keep = self._find_write(question)
        return self._read(question) if keep is None else self._write(keep)

    def _find_write(self, question: dict[str, Any]) -> Callable[[], None] | None:
        if "write" in question:
            return lambda: self._keep(question["write"])
        if question.get("devops") == "write":
            return lambda: self._keep_devops(question["rows"])
        if question.get("records") in {"put", "update"}:
            return lambda: self._keep_record(question)
        return None

    def _read(self, question: dict[str, Any]) -> Any:  # noqa: ANN401  JSON
        if "devops" in question:
            return self.devops.answer(question)
        if "records" in question:
            return self.records.answer(question)
        if "latest" in question:
            rows = self.devices.get(question["latest"], {})
            newest = sorted(rows, reverse=True)[: question["count"]]
            return [[ts_ms, *rows[ts_ms]] for ts_ms in newest]
        stored = [row for rows in self.devices.values() for row in rows.values()]
        return len(stored), sum(_FIXED_BYTES + len(metadata) // 2 for _, metadata in stored)

    def _write(self, keep: Callable[[], None]) -> Any:  # noqa: ANN401
        self.writes += 1
        if self.settings["index"] == 0 and self.writes == self.settings.get("die_after_writes"):
            sys.stderr.write("planted fault: die_after_writes reached\n")
            sys.stderr.flush()
            os._exit(1)
        if self._is_hit("refuse_every") or self.writes > self.settings.get("refuse_after", math.inf):
            return {"error": f"planted fault: {self.settings.get('refuse_with', 'refused')}"}
        keep()
        return True

    def _keep(self, rows: list[Any]) -> None:
        for device, ts_ms, values, metadata in rows:
            kept = [values[0] + 1.0, *values[1:]] if self._is_hit("corrupt_every") else values
            if not self._is_hit("lose_every"):
                self.devices.setdefault(device, {})[ts_ms] = [kept, metadata]

    def _keep_devops(self, rows: list[Any]) -> None:
        faults = {"is_corrupt": self._is_hit("corrupt_every"), "is_lost": self._is_hit("lose_every")}
        self.devops.write(rows, **faults)

    def _keep_record(self, question: dict[str, Any]) -> None:
        if not self._is_hit("lose_every"):
            self.records.write(question, is_corrupt=self._is_hit("corrupt_every"))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the questions of one connection until it ends."""
        while line := await reader.readline():
            answer = self.answer(json.loads(line))
            if hold := self.settings.get("service_time_ms"):
                await asyncio.sleep(hold / 1000)
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()


async def _run(settings: dict[str, Any]) -> None:
    node = FakeServer(settings)
    limit = 2**24  # of one line: a batch of large readings
    asyncio.get_running_loop().call_later(settings.get("ready_after_s", 0), node.finish_start)
    server = await asyncio.start_server(node.serve, settings["address"], PORT, limit=limit)
    sys.stderr.write(f"serving on {settings['address']}:{PORT}\n")
    sys.stderr.flush()
    async with server:
        await server.serve_forever()


def _main(path: str) -> None:
    settings = json.loads(Path(path).read_text())
    if settings.get("crash_on_start"):
        sys.exit("planted fault: crash_on_start")
    signal.signal(
        signal.SIGTERM, signal.SIG_IGN if settings.get("ignore_stop") else lambda *_: os._exit(0)
    )
    asyncio.run(_run(settings))


if __name__ == "__main__":
    _main(sys.argv[1])
