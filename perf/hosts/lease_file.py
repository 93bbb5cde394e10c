"""The lease as it lies on a host: a program of its own, sent there and run by its Python (3.9 on).

It needs nothing but the standard library. Arguments: the directory of the file, and a request as JSON.
It prints the answer as JSON. All that it decides is in `decide`, which is pure; the file is read and
written under a lock of the host's kernel, by the host's own clocks.

    lease.json    who holds the host, or nobody; and how the last few leases ended
    lease.lock    locked for as long as lease.json is read and written
"""

import fcntl
import hashlib
import json
import os
import stat
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

Json = Any
LEASE, LOCK = "lease.json", "lease.lock"
_FORMAT = 1
_REMEMBERED = 8
_HOLDER = {
    **dict.fromkeys(("token", "owner", "purpose", "process", "acquired", "expires", "boot"), str),
    **dict.fromkeys(("granted_s", "expires_s", "expires_since_boot_s"), (int, float)),
}
_ENDED = dict.fromkeys(("token", "owner", "purpose", "how", "by", "at"), str)


def decide(lease: Json, request: Json, now: Json) -> tuple[Json, Json]:
    """Return the new lease, or None if it stays as it is, and the answer to a request.

    `lease` is what the file holds; `now` has `unix_s`, `since_boot_s` and `boot` of the host. What is
    asked is one of

        take      by {token, owner, purpose, process}, for_s, gone: token of a holder known to be gone
        check     token
        renew     token, for_s
        release   token
        break     by, token: that of the holder that was shown, or the mark of a broken file
        show

    Answers have a `state`: held, free, refused (with the `holder` and `left_s`, how long it still has)
    or lost (with how it `ended`, if that is known, and the `holder`, if there is one).
    """
    asked, holder, ended = request["ask"], lease["holder"], lease["ended"]
    stand = {"holder": holder, "left_s": _left_s(holder, now) if holder else 0.0}
    if asked == "show":
        return None, {"state": "refused" if holder else "free", **stand}
    if asked == "take":
        return _take(lease, request, stand, now)
    if not holder or holder["token"] != request["token"]:
        known = [one for one in ended if one["token"] == request["token"]]
        return None, {"state": "lost", "ended": known[-1] if known else None, **stand}
    if asked == "renew":
        return {"holder": _grant(holder, request["for_s"], now), "ended": ended}, {"state": "held"}
    if asked == "check":
        return None, {"state": "held"}
    how = {"break": "broken", "release": "released"}[asked]
    who = request["by"] if asked == "break" else holder["owner"]
    return {"holder": None, "ended": _end(lease, how, who, now)}, {"state": "free"}


def _take(lease: Json, request: Json, stand: Json, now: Json) -> tuple[Json, Json]:
    by, holder, ended, over = request["by"], lease["holder"], lease["ended"], None
    if holder and holder["token"] != by["token"]:
        is_gone = holder["token"] == request["gone"]
        if not is_gone and stand["left_s"] > 0:
            return None, {"state": "refused", **stand}
        over, ended = holder, _end(lease, "crashed" if is_gone else "expired", by["owner"], now)
    return {"holder": _grant(by, request["for_s"], now), "ended": ended}, {
        "state": "held",
        "over": over,
    }


def _grant(by: Json, for_s: float, now: Json) -> Json:
    return {
        **{name: by[name] for name in ("token", "owner", "purpose", "process")},
        "acquired": by.get("acquired") or _utc(now["unix_s"]),
        "expires": _utc(now["unix_s"] + for_s),
        "expires_s": now["unix_s"] + for_s,
        "boot": now["boot"],
        "expires_since_boot_s": now["since_boot_s"] + for_s,
        "granted_s": for_s,
    }


def _left_s(holder: Json, now: Json) -> float:
    # The clock on the wall may be set meanwhile; the time since the boot only tells within one boot.
    if holder["boot"] == now["boot"]:
        return float(holder["expires_since_boot_s"] - now["since_boot_s"])
    return float(min(holder["expires_s"] - now["unix_s"], holder["granted_s"]))


def _end(lease: Json, how: str, by: str, now: Json) -> Json:
    one = {name: lease["holder"][name] for name in ("token", "owner", "purpose")}
    one.update(how=how, by=by, at=_utc(now["unix_s"]))
    return [*lease["ended"], one][-_REMEMBERED:]


def _utc(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")  # noqa: UP017  Python 3.9


def find_fault(lease: Json) -> str:
    """Describe why this is no lease that this program wrote; nothing if it is one."""
    if not isinstance(lease, dict) or not isinstance(lease.get("ended"), list):
        return "it is not a lease"
    if lease.get("format") != _FORMAT:
        return f"it is of format {lease.get('format')!r}, not {_FORMAT}; another Knickpoint wrote it"
    parts: list[tuple[Json, dict[str, Json]]] = [(one, _ENDED) for one in lease["ended"]]
    if lease.get("holder") is not None:
        parts.append((lease["holder"], _HOLDER))
    for part, fields in parts:
        for name, kind in fields.items():
            if not isinstance(part, dict) or not isinstance(part.get(name), kind):
                return f"its {name!r} is missing or wrong"
    return ""


def answer(directory: Path, request: Json) -> Json:
    """Answer a request about the lease in a directory; to be shown it changes nothing there.

    A file that is none is answered `corrupt`, with `why` and the mark to break it by as `seen`.
    """
    if request["ask"] == "show" and not (directory / LEASE).exists():
        return {"state": "free", "holder": None, "left_s": 0.0}
    directory.mkdir(parents=True, exist_ok=True)
    _refuse_foreign(directory)
    with (directory / LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        content, path = b"", directory / LEASE
        lease: Json = {"format": _FORMAT, "holder": None, "ended": []}
        if path.exists():
            content = path.read_bytes()
            try:
                lease = json.loads(content)
            except ValueError as error:
                lease, why = None, f"it is not JSON: {error}"
            else:
                why = find_fault(lease)
            if why:
                return _answer_corrupt(path, request, why, hashlib.sha256(content).hexdigest())
        changed, said = decide(lease, request, _now())
        if changed is not None:
            _write(path, json.dumps({"format": _FORMAT, **changed}, indent=1))
    return said


def _refuse_foreign(directory: Path) -> None:
    """End where somebody else could put links in the way of what is written here."""
    found = directory.lstat()
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if not is_ours or found.st_mode & stat.S_IWOTH:
        raise PermissionError(
            f"{directory} must be a directory of user {os.geteuid()}, whose it is alone to write to; "
            "name another work_dir in the testbed, or fix this one"
        )


def _answer_corrupt(path: Path, request: Json, why: str, seen: str) -> Json:
    if request["ask"] == "break" and request["token"] == seen:
        path.unlink()
        return {"state": "free"}
    return {"state": "corrupt", "why": f"{path}: {why}", "seen": seen}


def _now() -> Json:
    return {
        "unix_s": time.time(),
        "since_boot_s": time.clock_gettime(time.CLOCK_BOOTTIME),
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
    }


def _write(path: Path, text: str) -> None:
    # In one step, and on the disk before anybody builds on it: a host that loses power keeps it whole.
    fresh = path.with_suffix(".new")
    with fresh.open("w") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)


if __name__ == "__main__":
    json.dump(answer(Path(sys.argv[1]), json.loads(sys.argv[2])), sys.stdout)
