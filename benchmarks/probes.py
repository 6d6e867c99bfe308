"""`python -m benchmarks.probes`: does the time of an answer tell what is somebody else's from what never was?

The probes are those of `tests/supervisor/test_probes_of_daemon.py`, which compares the bytes of the answers. Each is
asked for both things as often, in an order that is another one in every round, over one connection that stays open. The
daemon runs in this process, with servers in memory: so what is measured is next to nothing but its own work. Exits with
1 if the medians of any probe are further apart than `--within` percent. Behind each ratio is that of processor time,
which a busy machine disturbs less: where it is about 1, look again on a calm one.
"""

from __future__ import annotations

import argparse
import logging
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import httpx2
import msgspec
import trio

from supervisor.host.datadir import open_data_dir
from tests.supervisor.test_probes_of_daemon import PROBES, Rig, doorway

MADE_ANEW_AFTER: Final = 20
"""Rounds; what the asked user owns does not live for ever."""
WARM_UP: Final = 5
PATIENCE_S: Final = 3600.0
_HEAD_END: Final = b"\r\n\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"


class Took(msgspec.Struct, frozen=True):
    """Seconds that an answer took, and those of the processor."""

    wall: float
    processor: float


class Compared(msgspec.Struct, frozen=True):
    """What answers to one probe took, for the foreign thing and for the one that never was."""

    probe: str
    foreign: Took
    never: Took

    @property
    def ratio(self) -> float:
        return self.foreign.wall / self.never.wall

    @property
    def apart(self) -> float:
        """By which part the longer median is above the shorter."""
        return max(self.ratio, 1 / self.ratio) - 1


class Asker:
    """One connection, opened again when the daemon ends it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stream: trio.SocketStream | None = None

    async def time(self, request: bytes) -> Took:
        """Send a request, and return what it took until its answer was there."""
        stream = self._stream or await trio.open_tcp_stream("127.0.0.1", self._port)
        begin, worked = time.perf_counter(), time.thread_time()
        await stream.send_all(request)
        head, answer = b"", b""
        while not _is_whole(head, answer):
            part = await stream.receive_some()
            if not part:
                raise ConnectionError("the daemon ended the connection before its answer")
            answer += part
            if not head and _HEAD_END in answer:
                head, _, answer = answer.partition(_HEAD_END)
        took = Took(time.perf_counter() - begin, time.thread_time() - worked)
        self._stream = stream
        if b"connection: close" in head.lower():
            await self.aclose()
        return took

    async def aclose(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()
        self._stream = None


def _is_whole(head: bytes, body: bytes) -> bool:
    if not head:
        return False
    _, named, rest = head.lower().partition(b"content-length:")
    return len(body) >= int(rest.partition(b"\r\n")[0]) if named else body.endswith(_LAST_CHUNK)


def as_bytes(request: httpx2.Request) -> bytes:
    """Return a request as it is sent."""
    lines = [f"{request.method} {request.url.raw_path.decode()} HTTP/1.1".encode()]
    lines += [name + b": " + value for name, value in request.headers.raw]
    return b"\r\n".join(lines) + _HEAD_END + request.read()


async def measure(rounds: int) -> list[Compared]:
    """Ask every probe so often for both things, and return the times, worst first."""
    with tempfile.TemporaryDirectory(prefix="probes-") as name, open_data_dir(Path(name) / "data", {}) as data:
        async with doorway(Path(name), data, PATIENCE_S) as at:
            rig = Rig(at)
            for user in ("ana", "ben"):
                await rig.admit(user)
            took: dict[tuple[str, bool], list[Took]] = {(probe, kind): [] for probe in PROBES for kind in (True, False)}
            asker = Asker(at.http.base_url.port or 80)
            for number in range(rounds + WARM_UP):
                if number % MADE_ANEW_AFTER == 0:
                    things = await rig.things()
                    of = {True: things, False: await rig.nothings(things)}
                    texts = {key: as_bytes(rig.request("ben", PROBES[key[0]], of[key[1]])) for key in took}
                    print(f"{number} of {rounds} rounds", file=sys.stderr, flush=True)
                for key in random.sample([*took], len(took)):
                    answered = await asker.time(texts[key])
                    if number >= WARM_UP:
                        took[key].append(answered)
            await asker.aclose()
    compared = [Compared(probe, _median(took[probe, True]), _median(took[probe, False])) for probe in PROBES]
    return sorted(compared, key=lambda each: -each.apart)


def _median(took: Sequence[Took]) -> Took:
    return Took(*(statistics.median(each) for each in zip(*map(msgspec.structs.astuple, took), strict=True)))


def shown(compared: Sequence[Compared], within: float) -> str:
    """Return the ratios as a list of Markdown, and whether all are close enough."""
    lines = [
        f"- **{each.ratio:.2f}** ({each.foreign.processor / each.never.processor:.2f}) {each.probe}: "
        f"{each.foreign.wall * 1000:.2f} ms, never there {each.never.wall * 1000:.2f} ms"
        for each in compared
    ]
    close = sum(each.apart <= within for each in compared)
    return "\n".join([*lines, "", f"{close} of {len(compared)} are within {within:.0%}."])


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.probes", description=__doc__)
    parser.add_argument("--rounds", type=int, default=400, help="how often each probe is asked for each thing")
    parser.add_argument("--within", type=float, default=10.0, help="percent that the medians may be apart")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    compared = trio.run(measure, arguments.rounds)
    within = arguments.within / 100
    print(shown(compared, within))
    return 0 if all(each.apart <= within for each in compared) else 1


if __name__ == "__main__":
    sys.exit(main())
