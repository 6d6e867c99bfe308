"""A stdio server that tries what a line of JSON asks for, and says how that went: `ok`, or the name of the errno."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import sys
from pathlib import Path

held: list[socket.socket] = []


def attempt(what: str, place: str) -> object:
    """Do it; what it gives, or `ok`."""
    match what:
        case "read":
            Path(place).read_bytes()
        case "write":
            Path(place).write_text("x")
        case "list":
            return sorted(os.listdir(place))  # noqa: PTH208
        case "connect":
            socket.create_connection(("127.0.0.1", int(place)), timeout=5).close()
        case "live":
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(place)
            connection.sendall(f"server {os.getpid()}\n".encode())
            held.append(connection)
        case "environment":
            return dict(os.environ)
        case "cwd":
            return os.getcwd()  # noqa: PTH109
        case "stay":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return "ok"


def end(*_: object) -> None:
    """SIGTERM was heard."""
    os._exit(3)


signal.signal(signal.SIGTERM, end)
for line in sys.stdin:
    request = json.loads(line)
    try:
        result = attempt(*request["params"])
    except OSError as error:
        result = errno.errorcode.get(error.errno or 0, str(error))
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
    sys.stdout.flush()
while True:
    signal.pause()
