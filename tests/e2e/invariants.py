"""What holds of every daemon, whatever a test does with it: while it runs, at its end, and in what it leaves behind.

- No child of it is a zombie for longer than a second, and none of its processes outlives it.
- Its descriptors, threads and tasks are about as many as there were at its start, but for what runs and is connected.
- No call is open when nobody calls any more.
- Its log has no word of a bug. No secret is in its log, on its pages, or in its files.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

WORDS = ("Traceback (most recent call last)", "Unhandled", "ExceptionGroup", "never awaited", "Task exception")
"""Of a bug, in a log."""
SECRETIVE = re.compile(r"token|secret|password|api.?key|authorization", re.IGNORECASE)
"""Names of variables and headers whose values nobody may see."""
SHORTEST = 8
"""A secret that is shorter may stand anywhere by chance."""
ZOMBIE_S = 15.0
GONE_S = 10.0
CALM_S = 10.0
"""Until a daemon whose clients went away must have noticed."""
OPEN = ("mcpvisor_calls_in_flight", "mcpvisor_calls_waiting")
"""Gauges that are zero where nobody calls."""
OF_EACH = 20
"""Descriptors, and tasks, that a server takes at most, and a client that is connected."""
SPARE = 100
"""What the daemon itself takes, and more."""
CANARY = {"UNUSED_API_TOKEN": "sk-canary-of-nobody-0123456789"}
"""A variable of every daemon that nobody was told to pass on."""
PAGES = ("/api/status", "/api/status/debug", "/metrics")


class Process(NamedTuple):
    """One process: its id, and when it began, in ticks since the boot, as ids are used again."""

    pid: int
    began: int


class Figures(NamedTuple):
    """How much a process has of what can leak."""

    rss_mib: float
    descriptors: int
    threads: int


def _stat(pid: int) -> list[str] | None:
    """Return the fields of a process from its state on (proc_pid_stat(5), field 3); None if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def process_of(pid: int) -> Process | None:
    fields = _stat(pid)
    return None if fields is None else Process(pid, int(fields[19]))


def is_alive(process: Process) -> bool:
    """Return whether it runs; a zombie does not."""
    fields = _stat(process.pid)
    return fields is not None and int(fields[19]) == process.began and fields[0] != "Z"


def parents() -> dict[int, tuple[int, str]]:
    """Return parent and state of every process."""
    found = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - this is done often, and pathlib takes three times as long
        if entry.isdigit() and (fields := _stat(int(entry))) is not None:
            found[int(entry)] = int(fields[1]), fields[0]
    return found


def below(pid: int) -> set[Process]:
    """Return all processes that descend from one and are no zombies."""
    every = parents()
    tree, found = {pid}, set[Process]()
    while more := {child for child, (parent, _) in every.items() if parent in tree} - tree:
        tree |= more
    for child in tree - {pid}:
        if every[child][1] != "Z" and (process := process_of(child)) is not None:
            found.add(process)
    return found


def zombies(pid: int) -> set[int]:
    """Return the children of a process that ended and were not reaped."""
    return {child for child, (parent, state) in parents().items() if parent == pid and state == "Z"}


def figures_of(pid: int) -> Figures:
    """Return figures of a process. Raises `OSError` if it is gone."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    descriptors, threads = (len(os.listdir(f"/proc/{pid}/{what}")) for what in ("fd", "task"))  # noqa: PTH208
    return Figures(pages * os.sysconf("SC_PAGESIZE") / 2**20, descriptors, threads)


def metrics_of(page: str) -> dict[str, float]:
    """Return the sum of each metric of a page of metrics, over all its labels."""
    sums: dict[str, float] = {}
    for line in page.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            name = name.partition("{")[0]
            sums[name] = sums.get(name, 0.0) + float(value)
    return sums


def ready_in(page: str) -> float:
    """Return how many servers are up, as a page of metrics says."""
    found = re.search(r'^mcpvisor_servers\{state="ready"\} (\S+)$', page, re.MULTILINE)
    return float(found[1]) if found else 0.0


def complaints_in(log: str) -> tuple[str, ...]:
    """Return the lines of a log that are about a bug, each with the one that tells of which."""
    lines = log.splitlines()
    return tuple(
        f"{lines[max(0, at - 1)]} | {line} | {' | '.join(lines[at + 1 : at + 30])}"[:3000]
        for at, line in enumerate(lines)
        if any(word in line for word in WORDS)
    )


def secrets_of(config: Any, name: str = "") -> set[str]:
    """Return the secrets that a configuration has: values of `env`, `headers` and `values` that are called so."""
    if isinstance(config, dict):
        return {secret for key, value in config.items() for secret in secrets_of(value, key)}
    secret = isinstance(config, str) and len(config) >= SHORTEST and "${" not in config and SECRETIVE.search(name)
    return {config.removeprefix("Bearer ")} if secret else set()


def configured_secrets(file: Path) -> set[str]:
    """Return the secrets of a configuration file; none of one that cannot be read."""
    try:
        config = json.loads(file.read_text())
        places = [server.get(part, {}) for server in config["mcpServers"].values() for part in ("env", "headers")]
    except (OSError, ValueError, AttributeError, KeyError):
        return set()
    return {secret for place in places for secret in secrets_of(place)}


def leaks_of(secrets: Iterable[str], shown: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return where a secret can be read, in texts by their places."""
    wanted = [secret for secret in secrets if len(secret) >= SHORTEST]
    return tuple(
        f"{secret[:6]}... in {place}" for place, text in shown.items() for secret in wanted if secret.encode() in text
    )


def files_below(directory: Path) -> dict[str, bytes]:
    """Return what is in the files of a directory."""
    found = {}
    for file in directory.rglob("*"):
        try:
            if file.is_file():
                found[str(file.relative_to(directory))] = file.read_bytes()
        except OSError:
            continue  # it is a socket, or went away
    return found


def names_of(pids: Iterable[int]) -> list[str]:
    """Return what processes are called (proc_pid_stat(5), fields 1 and 2, and the session)."""
    told = []
    for pid in pids:
        with suppress(OSError):
            head, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
            told.append(f"{head}) of session {rest.split()[3]}")
    return told


def wait(condition: Callable[[], bool], seconds: float, step_s: float = 0.01) -> bool:
    """Look until something holds, at most so long; return whether it does. It blocks."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(step_s)  # noqa: TID251 - nothing tells another process
    return True


class Watched:
    """A daemon that runs, before it is asked to end: what it has then, and what must be gone later."""

    def __init__(self, pid: int, url: str, data: Path, secrets: Iterable[str]) -> None:
        self._pid = pid
        self._url = url
        self._key = data / "page.key"
        self._secrets = {*secrets, *CANARY.values()}
        self._processes: set[Process] = set()

    def look(self, *, calm: bool = True) -> None:
        """Judge the daemon while it runs; if it is `calm` no call is open. Raises `AssertionError`."""
        assert wait(lambda: not zombies(self._pid), ZOMBIE_S), f"not reaped: {names_of(zombies(self._pid))}"
        self._processes = below(self._pid)
        shown = {path: page for path in PAGES if (page := self._page(path)) is not None}
        if "/metrics" not in shown:
            return
        assert not calm or wait(self._is_calm, CALM_S, 0.1), "calls are open, and nobody calls"
        metrics = metrics_of(shown["/metrics"].decode())
        most = SPARE + OF_EACH * (metrics.get("mcpvisor_servers", 0.0) + metrics["mcpvisor_client_connections"])
        assert figures_of(self._pid).descriptors <= most
        assert metrics["mcpvisor_tasks"] <= most
        assert leaks_of(self._secrets, shown) == ()

    def _is_calm(self) -> bool:
        page = self._page("/metrics")
        return page is None or not any(metrics_of(page.decode()).get(name) for name in OPEN)

    def _page(self, path: str) -> bytes | None:
        """Return a page as the operator sees it; None if this daemon shows it to nobody."""
        host, _, port = self._url.rpartition("/")[2].rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=CALM_S)
        try:
            connection.request("GET", path, headers={"authorization": f"Bearer {self._key.read_bytes().hex()}"})
            answer = connection.getresponse()
            page = answer.read()
            return page if answer.status == 200 else None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def check(self, log: str) -> None:
        """Judge what a daemon that ended has left. Raises `AssertionError`."""
        assert wait(lambda: not any(map(is_alive, self._processes)), GONE_S), "a process outlived the daemon"
        complaints = complaints_in(log)
        assert not complaints, complaints
        shown = {"the log": log.encode(errors="replace"), **files_below(self._key.parent)}
        assert leaks_of(self._secrets, shown) == ()
