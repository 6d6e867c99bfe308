"""The conversations that pages show: blocks of `http`, and of `text` with the messages of a WebSocket.

A page writes `<name>` for what differs from daemon to daemon. The first answer that has it says what it stands for;
from then on, in requests and answers, it stands for the same. JSON may be laid out over lines: the order of its members
counts, the spaces between them do not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Final, NamedTuple

import trio

from tests.e2e.daemons import Daemon
from tests.scenario.client import PATIENCE_S

UNSHOWN: Final = frozenset(
    {
        *("content-length", "transfer-encoding", "date"),
        *("x-content-type-options", "x-frame-options", "referrer-policy"),
    }
)
"""Headers of answers that a page need not show."""
CHANGED: Final = "notifications/tools/list_changed"
Change = Callable[[Daemon], Awaitable[object]]
CHANGING: Final = frozenset({"instructions"})
"""Placeholders that need not stand for the same all the time: instructions say which servers are starting."""
PLACEHOLDER: Final = re.compile(r"<(\w+)>")
_NUMBERS: Final = re.compile(r"(?<=: )<(\w+)>(?=[,}])")
_BLOCKS: Final = re.compile(r"^```(http|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Answer(NamedTuple):
    """What the daemon answered: the first line, the headers in small letters, and the body."""

    first: str
    headers: dict[str, str]
    body: str


class Meanings:
    """What the placeholders of one page stand for; `known` from the beginning."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = dict(known)

    def fill(self, text: str) -> str:
        """Return what is sent. Raises `KeyError` for a placeholder that no answer has explained."""
        return PLACEHOLDER.sub(lambda found: self._known[found[1]], text)

    def check(self, shown: str, real: str) -> None:
        """Hold what is shown against what came, and learn from it what is not known yet."""
        pattern, here = "", set[str]()
        for place, part in enumerate(PLACEHOLDER.split(shown)):
            pattern += self._pattern(part, part in here) if place % 2 else re.escape(part)
            here |= {part} if place % 2 else set()
        found = re.fullmatch(pattern, real)
        assert found, f"the page shows\n{shown}\nand the daemon answers\n{real}"
        self._known |= {name: value for name, value in found.groupdict().items() if name not in CHANGING}

    def _pattern(self, name: str, again: bool) -> str:
        if name in self._known:
            return re.escape(self._known[name])
        return f"(?P={name})" if again else f"(?P<{name}>.+)"


def compact(text: str) -> str:
    """Return JSON without the spaces between its members; a placeholder may stand where a number does."""
    quoted = _NUMBERS.sub(r'"#<\1>#"', text)
    return (
        json.dumps(json.loads(quoted), separators=(",", ":"), ensure_ascii=False)
        .replace('"#<', "<")
        .replace('>#"', ">")
    )


def blocks(page: Path) -> list[tuple[str, str]]:
    """The language and the text of each block that is a part of a conversation."""
    return _BLOCKS.findall(page.read_text(encoding="utf-8"))


def play(page: Path, daemon: Daemon, known: Mapping[str, str], change: Change) -> int:
    """Send the requests of a page, and hold its answers against the daemon's; return how many answers there were.

    `change` has a server gain a tool, where a page shows that somebody is told of it unasked.
    """
    meanings, answers = Meanings(known), 0
    answer: Answer | None = None
    for language, text in blocks(page):
        if language == "text":
            answers += trio.run(_converse, text, meanings, daemon, change)
        elif text.startswith("HTTP/"):
            assert answer is not None, f"nothing was asked before:\n{text}"
            _compare(text, answer, meanings)
            answer, answers = None, answers + 1
        else:
            assert answer is None, f"no answer is shown before:\n{text}"
            answer = _send(meanings.fill(text), daemon)
    assert answer is None, "no answer is shown to the last request"
    return answers


def _parts(text: str) -> tuple[str, dict[str, str], str]:
    """The first line, the headers and the body of a message."""
    head, _, body = text.partition("\n\n")
    first, *lines = head.strip().splitlines()
    return first, dict(line.split(": ", 1) for line in lines), body


def _send(text: str, daemon: Daemon) -> Answer:
    """Send a request with the headers that are shown, its length, and no others."""
    first, headers, body = _parts(text)
    method, path, version = first.split(" ")
    content = compact(body).encode() if body.strip() else b""
    assert version == "HTTP/1.1"
    assert headers.pop("Host") == "127.0.0.1:3001"
    with closing(HTTPConnection("127.0.0.1", daemon.port, timeout=PATIENCE_S)) as connection:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if content:
            connection.putheader("Content-Length", str(len(content)))
        connection.endheaders(content)
        with connection.getresponse() as response:
            real = {name.lower(): value for name, value in response.getheaders()}
            return Answer(f"HTTP/1.1 {response.status} {response.reason}", real, response.read().decode())


def _compare(text: str, answer: Answer, meanings: Meanings) -> None:
    first, headers, body = _parts(text)
    real = answer.headers
    assert first == answer.first, answer.body
    assert headers.keys() <= real.keys() <= headers.keys() | UNSHOWN
    for name, value in headers.items():
        meanings.check(value, real[name])
    if "json" in real.get("content-type", ""):
        meanings.check(compact(body), compact(answer.body))
    else:
        meanings.check(_events(body), _events(answer.body))


def _events(text: str) -> str:
    """Return an event stream with the JSON of its data in one form."""
    lines = [line for line in text.splitlines() if line]
    return "\n".join(
        f"data: {compact(line.removeprefix('data: '))}" if line.startswith("data: {") else line.rstrip()
        for line in lines
    )


async def _converse(text: str, meanings: Meanings, daemon: Daemon, change: Change) -> int:
    """Play a conversation over one WebSocket; return how many messages of the daemon it has."""
    messages = [(message[0], compact(message[1:])) for message in re.split(r"^(?=[→←])", text, flags=re.MULTILINE)[1:]]
    with trio.fail_after(PATIENCE_S):
        async with daemon.websocket("/mcp") as socket:
            for direction, message in messages:
                if direction == "→":
                    await socket.send_message(meanings.fill(message))
                    continue
                if CHANGED in message:
                    await change(daemon)
                real = await socket.get_message()
                assert isinstance(real, str)
                meanings.check(message, compact(real))
    return sum(direction == "←" for direction, _ in messages)
