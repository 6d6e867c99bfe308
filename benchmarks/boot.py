"""Start and rest: how soon the daemon answers when its catalogue is known, and what it takes while all servers sleep.

A first daemon discovers the servers and lets them sleep; a second one, with the same data directory, is measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from actors.catalogue import lists
from actors.catalogue.offer import Offer, decode_offer, encode_offer
from actors.catalogue.snapshot import Entry
from actors.catalogue.trust import Pins
from actors.registry.pinning import Pinning
from benchmarks import client as mcp
from benchmarks.machine import descendants, memory, taken_bytes, until
from benchmarks.running import ECHO, Place, Running, bare, daemon, entry, status, until_dormant, until_ready
from benchmarks.table import Aim, Row, ratios, spread

BOOT_AIM = Aim("<=", 1.0, "s")
NO_PROCESS = Aim("<=", 0)
BESIDE_AIM = Aim("<=", 1.1, "kB")
IDLE_S = 1.0

Tools = dict[str, list[dict[str, Any]]]


@contextmanager
def dormant_daemon(directory: Path, tools: Tools) -> Iterator[Running]:
    """Run a daemon whose servers have these tools, are all known and all asleep."""
    place, servers = discovered(directory, tools)
    with daemon(place, servers) as running:
        until_ready(running.port)
        yield running


def discovered(directory: Path, tools: Tools) -> tuple[Place, dict[str, Any]]:
    """Let a daemon discover fake servers with these tools and end; return its place and its servers."""
    directory.mkdir()
    place = Place(directory)
    servers: dict[str, Any] = {}
    for name, listed in tools.items():
        path = directory / f"{name}.json"
        path.write_bytes(msgspec.json.encode(listed))
        servers[name] = entry((*ECHO, "--tools-file", str(path)), idle_timeout_s=IDLE_S)
    with daemon(place, servers) as running:
        until_ready(running.port)
        until_dormant(running.port)
    return place, servers


def run(directory: Path, tools: Tools, rounds: int) -> list[Row]:
    """Measure the boot several times, then processes and memory of the last daemon at rest."""
    place, servers = discovered(directory, tools)
    answering: list[float] = []
    ready: list[float] = []
    least: list[float] = []
    for _ in range(rounds):
        least.append(_bare_start(place.directory))
        begin = time.perf_counter()
        with daemon(place, servers) as running:
            until(partial(_healthy, running.port), "the first answer", step_s=0.002)
            answering.append(time.perf_counter() - begin)
            until(partial(_ready, running.port), "readiness", step_s=0.01)
            ready.append(time.perf_counter() - begin)
            until_ready(running.port)
            processes = len(descendants(running.process.pid))
            rest = memory(running.process.pid)
            totals = status(running.port)["totals"]
    middle = spread(answering)
    size = f"{totals['servers']} dormant servers, {totals['tools']:,} tools"
    return [
        Row(
            what=f"boot to the first answer, {size}, all known",
            measured=f"{middle} s (ready to search: {spread(ready)} s)",
            compared=f"bare hypercorn/trio: {spread(least)} s",
            ratio=str(ratios(answering, least)),
            aim=BOOT_AIM,
            value=middle.median,
        ),
        Row(what="processes after that boot", measured=str(processes), aim=NO_PROCESS, value=processes),
        Row(what=f"memory with {size}", measured=f"RSS {rest.rss_mib:.0f} MiB, PSS {rest.pss_mib:.0f} MiB"),
        _beside_definitions(tools),
    ]


def _beside_definitions(tools: Tools) -> Row:
    """Return what is kept of a tool beside the JSON of its definition, index and processes aside."""
    texts = {server: [msgspec.json.encode(tool) for tool in listed] for server, listed in tools.items()}
    count, size = sum(map(len, texts.values())), sum(len(text) for listed in texts.values() for text in listed)
    offers = _read(texts)
    saved = {server: encode_offer(offer) for server, offer in offers.items()}
    pinning = _judged(offers, {})[1]
    pins = {server: msgspec.json.encode(pinning.of(server)) for server in offers}
    read = taken_bytes(lambda: _judged(_read(texts), {})) / count / 1000
    recalled = (taken_bytes(lambda: _judged(_recalled(saved), pins)) - size) / count / 1000
    return Row(
        what=f"memory of a tool beside its definition of {size / count / 1000:.1f} kB, without the search",
        measured=f"{recalled:.2f} kB; before it was saved: {read:.2f} kB",
        aim=BESIDE_AIM,
        value=recalled,
    )


def _read(texts: Mapping[str, list[bytes]]) -> dict[str, Offer]:
    return {name: Offer(tools=tuple(map(lists.tool, map(msgspec.Raw, each)))) for name, each in texts.items()}


def _recalled(saved: Mapping[str, bytes]) -> dict[str, Offer]:
    return {server: decode_offer(bytes(bytearray(payload))) for server, payload in saved.items()}  # read anew


def _judged(offers: Mapping[str, Offer], pins: Mapping[str, bytes]) -> tuple[list[Entry], Pinning]:
    pinning = Pinning(known={name: msgspec.json.decode(saved, type=Pins) for name, saved in pins.items()})
    entries = [Entry.make(name, "stdio", own, standing=pinning.judge(name, own)) for name, own in offers.items()]
    return entries, pinning


def _bare_start(directory: Path) -> float:
    begin = time.perf_counter()
    with bare(100, directory):  # entered when it listens, which is when it answers
        return time.perf_counter() - begin


def _healthy(port: int) -> bool:
    return bool(mcp.page(port, "/healthz")["status"] == "ok")


def _ready(port: int) -> bool:
    return bool(mcp.page(port, "/readyz")["ready"])
