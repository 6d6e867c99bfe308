"""A server whose lists and answers are files: `python worst_server.py DIRECTORY`. Standard library only.

Results are the files `initialize.json` and `tools-0.json`, `tools-1.json` ... (pages; `@TURN@` is replaced by how often
the list was asked for), the same for `resources`, `templates` and `prompts`. `stderr.txt` is written to stderr first.
A call of the tool `relist` tells that the lists changed; a call of `exit` ends it; any other answers with the file
`answer-NAME.json`, which is the whole member `"result":...` or `"error":...`, or with nothing much. Where there is a
file `asks-NAME.json`, its lines are written first, with an id of their own in place of each `@ID@` and the token of the
call in place of `@TOKEN@`, and the call is answered when all of them are. A request for a stream of events is followed
by the lines of `stream.json`, with its id in place of each `@ID@`. Where there is a file `wait`, nothing is answered
before it is gone.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "templates",
    "prompts/list": "prompts",
    "events/list": "events",
}
_ID = re.compile(rb'"id":("[^"]*"|[0-9]+)')
_METHOD = re.compile(rb'"method":"([^"]*)"')
_NAME = re.compile(rb'"name":"([^"]*)"')
_CURSOR = re.compile(rb'"cursor":"([0-9]+)"')
_TOKEN = re.compile(rb'"progressToken":("[^"]*"|[0-9]+)')
_HEAD_BYTES = 4096
"""Only the beginning of a message is looked at."""


class Server:
    """Answers one line after the other."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._turn = 0
        self._asking: dict[bytes, int] = {}

    def answer(self, line: bytes) -> None:
        """Answer a request; notifications mean nothing."""
        head = line[:_HEAD_BYTES]
        asked, method = _ID.search(head), _METHOD.search(head)
        if asked is None:
            return
        if method is None:
            self._answered(asked[1])
            return
        while (self._directory / "wait").exists():
            time.sleep(0.05)  # noqa: TID251 - a program of its own, without a loop
        if method[1] == b"tools/call" and self._ask(asked[1], head):
            return
        if method[1] == b"events/stream":
            sys.stdout.buffer.write((self._directory / "stream.json").read_bytes().replace(b"@ID@", asked[1]))
            sys.stdout.buffer.flush()
            return
        body = self._body(method[1].decode(), head)
        sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":%b,%b}\n' % (asked[1], body))
        sys.stdout.buffer.flush()

    def _ask(self, call: bytes, head: bytes) -> bool:
        """Ask what a tool asks during its calls, if it does."""
        name, token = _NAME.search(head), _TOKEN.search(head)
        file = self._directory / f"asks-{name[1].decode() if name else ''}.json"
        if not file.exists():
            return False
        lines = file.read_bytes().replace(b"@TOKEN@", token[1] if token else b'""').splitlines(keepends=True)
        self._asking[call] = len(lines)
        for number, line in enumerate(lines):
            sys.stdout.buffer.write(line.replace(b"@ID@", call.strip(b'"') + b"/%d" % number, 1))
        sys.stdout.buffer.flush()
        return True

    def _answered(self, id_: bytes) -> None:
        """Take an answer; the last one ends the call."""
        name = id_.strip(b'"').partition(b"/")[0]
        call = b'"%b"' % name if b'"%b"' % name in self._asking else name
        if call in self._asking:
            self._asking[call] -= 1
            if not self._asking[call]:
                del self._asking[call]
                sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":%b,"result":{"content":[]}}\n' % call)
                sys.stdout.buffer.flush()

    def _body(self, method: str, head: bytes) -> bytes:
        if method == "initialize":
            return b'"result":' + (self._directory / "initialize.json").read_bytes()
        if method in LISTS:
            cursor = _CURSOR.search(head)
            return b'"result":' + self._page(LISTS[method], int(cursor[1]) if cursor else 0)
        if method in ("resources/subscribe", "resources/unsubscribe"):
            return b'"result":{}'
        if method in ("tools/call", "resources/read", "prompts/get"):
            return self._called(_NAME.search(head) if method == "tools/call" else None)
        return b'"error":{"code":-32601,"message":"unknown method"}'

    def _page(self, kind: str, number: int) -> bytes:
        self._turn += number == 0
        page = (self._directory / f"{kind}-{number}.json").read_bytes()
        return page.replace(b"@TURN@", b"%d" % self._turn)

    def _called(self, name: re.Match[bytes] | None) -> bytes:
        wanted = name[1].decode() if name else "resource"
        if wanted == "exit":
            os._exit(1)
        if wanted == "relist":
            sys.stdout.buffer.write(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n')
        file = self._directory / f"answer-{wanted}.json"
        return file.read_bytes() if file.exists() else b'"result":{"content":[]}'


def main() -> None:
    """Serve until the input ends."""
    directory = Path(sys.argv[1])
    noise = directory / "stderr.txt"
    if noise.exists():
        sys.stderr.buffer.write(noise.read_bytes())
        sys.stderr.buffer.flush()
    server = Server(directory)
    for line in sys.stdin.buffer:
        server.answer(line)


if __name__ == "__main__":
    main()
