"""A client that is told of progress many times a second, in a process of its own. Standard library only.

`python flooded.py PORT`; on stdin one JSON object: `request` (base64, one HTTP request whose answer is a stream).
When the first progress is there it says so by a line on stdout, and at the end how many came in how many seconds.
"""

from __future__ import annotations

import base64
import json
import socket
import sys
import time

PROGRESS = b'"method":"notifications/progress"'


def main() -> None:
    """Make the call and count."""
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60) as connection:
        connection.sendall(base64.b64decode(json.loads(sys.stdin.readline())["request"]))
        data, told, begin = b"", 0, 0.0
        while b'"result":' not in data:
            part = connection.recv(65536)
            if not part:
                raise SystemExit(f"the stream ended: {data!r}")
            data += part
            if not told and PROGRESS in data:
                begin = time.perf_counter()
                print("begun", flush=True)
            whole, separator, data = data.rpartition(b"\n\n") if b'"result":' not in data else (data, b"", data)
            told += whole.count(PROGRESS) if separator else 0
        told += data.count(PROGRESS)
    print(json.dumps({"told": told, "seconds": time.perf_counter() - begin}), flush=True)


if __name__ == "__main__":
    main()
