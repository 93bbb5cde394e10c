"""A fresh disk for each trial: what the trial before left in page cache and on the device is forgotten.

The directories of the nodes were emptied before. A file system on flash still holds their blocks for
used until it is told otherwise (fstrim), and writes get slower as free ones run out; and what is cached
of an earlier trial would be read from memory. Both need root, or the program that root installed.
"""

from perf.hosts.remote import Remote
from perf.hosts.tuning.privileged import PROGRAM, render_freshen
from perf.model.design import DiskPolicy
from perf.model.errors import HostUnfit
from perf.model.results import Fact

PAGE_CACHE, TRIM = "page_cache", "trim"
"""Facts of each server host: what was done before the trial. A device that cannot trim says so."""
# A large device that was never trimmed takes minutes.
_TIMEOUT_S = 900.0
_AS_ROOT = (
    f'[ "$(id -u)" = 0 ] && exec sh -s -- "$@"; exec sudo -n {PROGRAM} --fresh-disk "$@" </dev/null'
)


def freshen(
    remote: Remote, directory: str, policy: DiskPolicy
) -> tuple[tuple[Fact, ...], tuple[str, ...]]:
    """Do to page cache and device of a directory what the policy says; give facts, and words.

    How much was trimmed is no fact of the host: it differs from trial to trial, and is said in words.

    Raises:
        HostUnfit: this user may not do it, or it failed.
        StepFailed: the host cannot be reached.

    """
    wanted = {"--drop-caches": policy.drops_caches, "--trim": policy.trims}
    flags = [flag for flag, is_wanted in wanted.items() if is_wanted]
    done = remote.run(
        ["sh", "-c", _AS_ROOT, "freshen", directory, *flags],
        stdin=render_freshen(),
        check=False,
        timeout_s=_TIMEOUT_S,
    )
    if done.returncode:
        why = done.stderr.strip()[-500:] or f"exit {done.returncode}"
        raise HostUnfit(
            f"{remote.name}: its disk cannot be made fresh: {why}\n"
            f"prepare the host with Ansible (infra/), or install {PROGRAM} as root, with what "
            "`knickpoint host script` prints, and let sudo run it without a password; or remove `disk` "
            "from the testbed"
        )
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    facts = tuple(
        Fact(host=remote.name, name=name, value=_shorten(said[name]))
        for name in (PAGE_CACHE, TRIM)
        if name in said
    )
    return facts, tuple(f"{name.replace('_', ' ')}: {text}" for name, text in said.items())


def _shorten(text: str) -> str:
    return "done" if text.startswith("done ") else text
