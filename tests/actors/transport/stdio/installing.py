"""Stands in for `npx`: works for some seconds without a word, alone or in a child, then is an MCP server.

    npx PACKAGE SECONDS [quiet | child | only | tidy MARKER]

`quiet`: it does nothing instead of working. `child`: a process that it starts does the work. `only`: it works and ends.
`tidy`: told to terminate, it tidies up for a while and makes the file.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path


def install(seconds: str, how: str, marker: str) -> None:
    if how == "tidy":
        signal.signal(signal.SIGTERM, lambda *_: tidy_up(Path(marker)))
    print("installing", file=sys.stderr, flush=True)
    if how == "child":
        subprocess.run([sys.executable, "-IS", __file__, "package", seconds, "only"], check=True)
    elif how == "quiet":
        pause(float(seconds))
    else:
        work(float(seconds))


def pause(seconds: float) -> None:
    time.sleep(seconds)  # noqa: TID251 - a program of its own, there is no loop


def work(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(100_000))
        pause(0.01)


def tidy_up(marker: Path) -> None:
    pause(0.5)
    marker.write_text("tidy")
    sys.exit(0)


def serve() -> None:
    agreed = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        error = {"code": -32601, "message": "unknown method"}
        answer = {"result": agreed} if message["method"] == "initialize" else {"error": error}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)


if __name__ == "__main__":
    seconds, how, marker = (*sys.argv[2:], "", "")[:3]
    install(seconds, how, marker)
    if how != "only":
        serve()
