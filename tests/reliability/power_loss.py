"""What a disk may hold when the power fails: all states that a record of changes allows, by a model.

The model promises no more than POSIX does. Content is on the disk once its file is synced, a name once
its directory is; anything else is there or not, in any order, and of a write perhaps a part. Only one
step of names (a rename) is never done by half. See `disks` for the record.
"""

import hashlib
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from disks import Change


@dataclass(eq=False, slots=True)
class File:
    """A file: what is on the disk for sure, and what was written since."""

    synced: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes at an offset; without bytes, cuts to a length."""

    def content(self, chosen: Sequence[tuple[int, bytes | None]]) -> bytes:
        """Return the content with some of the pending writes."""
        content = bytearray(self.synced)
        for offset, written in chosen:
            end = offset if written is None else offset + len(written)
            content.extend(bytes(max(0, end - len(content))))
            if written is None:
                del content[offset:]
            else:
                content[offset:end] = written
        return bytes(content)


@dataclass(eq=False, slots=True)
class Folder:
    """A directory: its names on the disk for sure, and those that a running program sees."""

    synced: "dict[str, File | Folder]" = field(default_factory=dict)
    seen: "dict[str, File | Folder]" = field(default_factory=dict)


Edit = tuple[Folder, str, File | Folder | None]
"""A name that leads somewhere else from now on, or nowhere."""
Tree = dict[str, bytes | None]
"""Content by path; None for a directory."""


@dataclass(slots=True)
class Disk:
    """A directory that is all on the disk, then a record of changes."""

    root: Path
    top: Folder = field(default_factory=Folder)
    by_inode: dict[int, File | Folder] = field(default_factory=dict)
    steps: list[tuple[Edit, ...]] = field(default_factory=list)
    """Changes of names that are not on the disk for sure, in order."""

    def __post_init__(self) -> None:
        """Read the directory as it is."""
        self._read(self.root, self.top)

    def _read(self, place: Path, folder: Folder) -> None:
        self.by_inode[place.stat().st_ino] = folder
        for entry in os.scandir(place):
            node: File | Folder = Folder() if entry.is_dir() else File(Path(entry).read_bytes())
            folder.synced[entry.name] = folder.seen[entry.name] = node
            self.by_inode[entry.inode()] = node
            if isinstance(node, Folder):
                self._read(Path(entry), node)

    def apply(self, change: Change) -> None:
        """Do what a program did."""
        node = self.by_inode.get(change.inode)
        match change.what:
            case "create" | "mkdir":
                node = File() if change.what == "create" else Folder()
                self.by_inode[change.inode] = node
                self._edit((*self._find(change.path), node))
            case "write" if isinstance(node, File):
                node.pending.append((change.offset, change.content))
            case "truncate" if isinstance(node, File):
                node.pending.append((change.offset, None))
            case "remove":
                self._edit((*self._find(change.path), None))
            case "rename" | "link":
                folder, name = self._find(change.path)
                ends = ((folder, name, None),) if change.what == "rename" else ()
                self._edit(*ends, (*self._find(change.to), folder.seen[name]))
            case "exchange":
                folder, name = self._find(change.path)
                other, its_name = self._find(change.to)
                self._edit((folder, name, other.seen[its_name]), (other, its_name, folder.seen[name]))
            case "sync":
                self._sync(node)
            case _:
                assert change.what == "told" or node is None, change

    def _find(self, path: str) -> tuple[Folder, str]:
        *above, name = Path(path).relative_to(self.root).parts
        folder = self.top
        for part in above:
            inner = folder.seen[part]
            assert isinstance(inner, Folder)
            folder = inner
        return folder, name

    def _edit(self, *edits: Edit) -> None:
        for folder, name, node in edits:
            _set(folder.seen, name, node)
        self.steps.append(edits)

    def _sync(self, node: File | Folder | None) -> None:
        if isinstance(node, File):
            node.synced = node.content(node.pending)
            node.pending.clear()
        elif isinstance(node, Folder):
            kept = []
            for step in self.steps:
                if any(folder is node for folder, _, _ in step):
                    for folder, name, to in step:
                        _set(folder.synced, name, to)
                else:
                    kept.append(step)
            self.steps = kept

    def lose(self, names: float, writes: float, seed: str) -> Tree:
        """Return what is there after the power failed, by the shares of what was kept nonetheless."""
        generator = random.Random(seed)  # noqa: S311  test data, not a secret
        folders: dict[int, dict[str, File | Folder]] = {}
        for step in self.steps:
            if generator.random() < names:
                for folder, name, to in step:
                    _set(folders.setdefault(id(folder), dict(folder.synced)), name, to)
        tree: Tree = {}

        def walk(folder: Folder, path: str) -> None:
            for name, node in sorted(folders.get(id(folder), folder.synced).items()):
                if isinstance(node, Folder):
                    tree[f"{path}{name}"] = None
                    walk(node, f"{path}{name}/")
                else:
                    tree[f"{path}{name}"] = _survive(node, writes, generator)

        walk(self.top, "")
        return tree


def _set(names: dict[str, File | Folder], name: str, node: File | Folder | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


def _survive(file: File, share: float, generator: random.Random) -> bytes:
    """Choose pending writes by a share; where only some are kept, one of them may be cut short."""
    chosen: list[tuple[int, bytes | None]] = []
    for offset, written in file.pending:
        if generator.random() >= share:
            continue
        is_torn = 0 < share < 1 and generator.random() < share / 2
        kept = written[: generator.randrange(len(written))] if written and is_torn else written
        chosen.append((offset, kept))
    return file.content(chosen)


SHARES = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 0.5), (0.8, 0.3))
"""Of names and of writes: nothing, names without content, content without names, a kill, and chance."""


def crash(
    disk: Disk, changes: Sequence[Change], most: int, seed: str
) -> Iterator[tuple[str, Tree, str]]:
    """Yield states of a disk after the power failed: where, what is left, what had been said till then.

    The power fails before anything is synced or said, and at the end; of more than `most` states, some
    are chosen. No state comes twice with the same words.
    """
    ended = (*changes, Change("sync", 0, 0, "", "", b""))
    points = [number for number, one in enumerate(ended) if one.what in {"sync", "told"}]
    cases = [(number, shares) for number in points for shares in SHARES]
    if len(cases) > most:
        cases = random.Random(seed).sample(cases, most)  # noqa: S311  test data, not a secret
    said, seen = "", set()
    for number, change in enumerate(ended):
        for names, writes in [shares for at, shares in cases if at == number]:
            tree = disk.lose(names, writes, f"{seed} {number} {names} {writes}")
            key = hashlib.sha256(repr((sorted(tree.items()), said)).encode()).digest()
            if key not in seen:
                seen.add(key)
                yield (
                    f"before change {number}, {names:.0%} of names, {writes:.0%} of writes",
                    tree,
                    said,
                )
        if change.what == "told":
            said += change.content.decode(errors="replace")
        disk.apply(change)


def lay_out(tree: Tree, place: Path) -> None:
    """Make a directory that holds a state."""
    place.mkdir(parents=True)
    for path, content in tree.items():
        if content is None:
            (place / path).mkdir()
        else:
            (place / path).write_bytes(content)
