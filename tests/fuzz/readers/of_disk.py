"""What is read back from the disk: records of the store, journals; and what the system and installers write there."""

from __future__ import annotations

import math
import os
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

from actors.catalogue.lists import read_again
from actors.catalogue.offer import Offer, decode_offer, encode_offer
from actors.catalogue.trust import Pins
from actors.protocol.wire import json
from actors.transport.redaction import KeyLines, Mask, without_secrets
from actors.transport.side_output import Asides, Tail, visible
from actors.transport.stdio.causes import cause_of
from actors.transport.stdio.installer import failure, failure_in
from actors.transport.stdio.resources.figures import read_trees
from actors.transport.stdio.resources.groups import look_at_memory, own_group, was_out_of_memory
from supervisor.host.program import Systemd
from supervisor.servers.journals.files import LogFiles, ReadLimit, file_name, parse_file_name
from supervisor.store.database import Database
from supervisor.store.records import SavedCalls
from supervisor.store.sealing import Sealing
from supervisor.usage import history
from supervisor.usage.periods import decode
from tests.fuzz.target import parts_of, same, text_of

_PINS = msgspec.json.Decoder(Pins)
_SEALING = Sealing(b"k" * 32)
_MASK = Mask({"TOKEN": "geheimnis-0815"})


_MEMORY = Path("/dev/shm")


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="mcpvisor-fuzz-", dir=_MEMORY if _MEMORY.is_dir() else None))


def records(data: bytes) -> None:
    """Read records of the store: what was written, or nothing. None of it ends the daemon."""
    try:
        offer: Offer = decode_offer(data)
    except json.UnreadableJson:
        pass
    else:
        saved = encode_offer(read_again(offer))
        same(encode_offer(decode_offer(saved)), saved)
    period = decode("minute", 0, data)
    if period is not None:
        same(decode("minute", 0, period.encode()), period)
    newest, calls = history._calls([SavedCalls(1, data), SavedCalls(5, data)], 10)
    assert newest >= len(calls) - 10
    json.read_or(_PINS, data, None)
    assert _SEALING.open(data, ("a",), Offer) is None


def rows(data: bytes) -> None:
    """Read rows of SQLite whose values are of any kind: those of the right types."""
    database = Database(_folder() / "rows.db")
    text, blob = text_of(data[: len(data) // 2]), data[len(data) // 2 :]
    try:
        for kind in (tuple[str, bytes], tuple[str, float], tuple[int, bytes | None]):
            for row in database.load(
                kind, "SELECT ?, ? UNION ALL SELECT ?, ? UNION ALL SELECT ?, ?", (text, blob, blob, text, 1, None)
            ):
                assert len(row) == 2
    finally:
        database.close()


def journals(data: bytes) -> None:
    """Read a log of a server backwards: each line that is one, in the order of the file, whatever is between them."""
    files = LogFiles(_folder())
    path = _folder() / file_name("s")
    path.write_bytes(data)
    found = list(files.newest_first("s", ReadLimit(1 << 20, math.inf)))
    whole = [line for line in data.split(b"\n") if len(line) < 60_000]
    assert len(found) <= len(whole)
    assert not [*files.newest_first("s", ReadLimit(0, math.inf))] or not data
    files.mask("s", _MASK)
    assert not any("geheimnis-0815" in line.text for line in files.newest_first("s", ReadLimit(1 << 20, math.inf)))
    name = parse_file_name(text_of(data))
    assert name is None or name.number < 1000


def outputs(data: bytes) -> None:
    """Show what a program wrote: visible, on lines of a bounded length, and without what is configured as secret."""
    text = text_of(data)
    keys = KeyLines()
    for line in data.split(b"\n"):
        keys.inside(line)
    shown = without_secrets(text)
    assert "ghp_0123456789012345678901234567890" not in shown
    assert len(cause_of(text).words) <= 200
    tail = Tail(_MASK, 2000)
    for part in (data[:100], data[100:101], data[101:]):
        tail.feed(part)
    said = tail.text(20)
    assert "geheimnis-0815" not in said
    assert all(len(line) <= 10_100 and (line.isprintable() or "\t" in line) for line in said.split("\n"))
    asides = Asides(_MASK)
    asides.stderr(data)
    asides.noise([data])
    assert "geheimnis-0815" not in asides.last_stderr(5) + asides.last_stdout(5)
    head, end = map(text_of, parts_of(data, 2))
    assert len(failure([(head, end)], "x")) <= 1001
    assert visible(_MASK(text)) is not None


def machine(data: bytes) -> None:
    """Read what the system says of processes, memory and groups, and what npm logged: figures, or nothing."""
    stat, statm, meminfo, group, limit, log = parts_of(data, 6)
    root = _folder() / "proc"
    for name, content in (
        ("7/stat", stat),
        ("7/statm", statm),
        ("meminfo", meminfo),
        ("self/cgroup", group),
        ("pressure/memory", meminfo),
        ("cgroup.controllers", b"memory"),
        ("a/memory.max", limit),
        ("a/memory.current", limit),
        ("a/memory.stat", limit),
        ("a/memory.events", limit),
        ("logs/2026-debug-0.log", log),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    for top in (1, 7):
        for sums in read_trees(str(root), top).values():
            assert sums.processes >= 1
    look = look_at_memory(root, root)
    assert look.pressure is None or math.isfinite(look.pressure)
    place = own_group(root, root)
    assert place is None or root in (place, *place.parents)
    was_out_of_memory(root / "a")
    assert len(failure_in(str(root / "logs"), "x")) <= 1001
    with suppress(ValueError):
        Systemd({"NOTIFY_SOCKET": "", "WATCHDOG_USEC": text_of(limit), "WATCHDOG_PID": str(os.getpid())})


TARGETS = {
    "records": records,
    "rows": rows,
    "journals": journals,
    "outputs": outputs,
    "machine": machine,
}
