"""Servers behind HTTP, and what stands before them, that behave as real ones were seen to: `MANNERS`, by name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import trio

from tests.fakes.behaving_server import Player
from tests.fakes.behaviour import Behaviour, refused
from tests.fakes.behaviours import BEHAVIOURS, LOG, PING, ROOTS
from tests.fakes.lines import Lines
from tests.fakes.memory import MemoryPeer
from tests.fakes.remote_server import SESSION, RemoteServer, Request
from tests.fakes.socket_server import SocketServer
from tests.fakes.sse_server import SseServer

VERSION = "mcp-protocol-version"
EVENTS, JSON = "text/event-stream", "application/json"
Said = tuple[int, str, bytes]
"""Status, media type and body of an answer."""
NOTHING: Said = (404, "", b"")


def error(code: int, message: str, id_: Any = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, **refused(code, message)}).encode()


class Manner(NamedTuple):
    """How one server speaks HTTP, around what it `plays`.

    `sessions`: it gives one. `probe`: what a request before the handshake gets; `mints`: with a session. `events`: it
    answers by a stream, with `preface` before its messages. `accepted`: what notifications get, `ended` a DELETE.
    `listens`: a GET gets a stream, else `deaf`. `forgets`: what the third call of a session gets, and all that
    comes later. `strict`: it wants the headers that the specification asks for. `statuses` of errors, by code.
    """

    plays: Behaviour = Behaviour()
    sessions: bool = True
    probe: Said | None = None
    mints: bool = False
    events: bool = True
    preface: bytes = b""
    kinds: tuple[str, str] = (JSON, EVENTS)
    accepted: Said = (202, "text/plain", b"")
    ended: int = 200
    listens: bool = True
    deaf: int = 405
    forgets: Said | None = None
    strict: bool = False
    statuses: Mapping[int, int] = {}


MODERN = Behaviour(eras=("modern",))
PRIMED = b": hello\n\nid: a-1\nretry: 2000\ndata: \n\n: ping\n\n"
MANNERS = {
    "http-events": Manner(strict=True),
    "http-json": Manner(events=False, listens=False, strict=True),
    "http-stateless": Manner(sessions=False, listens=False),
    "http-python-1": Manner(
        probe=(400, JSON, error(-32600, "Bad Request: Missing session ID", "server-error")), mints=True
    ),
    "http-typescript-1": Manner(probe=(400, JSON, error(-32000, "Bad Request: Server not initialized"))),
    "http-page": Manner(probe=(400, "text/html", b"<html>Bad Request</html>")),
    "http-nothing": Manner(probe=NOTHING),
    "http-primes": Manner(preface=PRIMED),
    "http-charset": Manner(kinds=(f"{JSON}; charset=utf-8", f"{EVENTS};charset=UTF-8")),
    "http-charset-json": Manner(kinds=(f"{JSON};charset=UTF-8", EVENTS), events=False),
    "http-accepts-by-200": Manner(accepted=(200, JSON, b"null"), ended=405, deaf=409, listens=False),
    "http-accepts-by-204": Manner(accepted=(204, "", b""), ended=404, deaf=404, listens=False),
    "http-forgets-by-400": Manner(forgets=(400, JSON, error(-32000, "Bad Request: No valid session ID provided"))),
    "http-forgets-by-404": Manner(forgets=(404, JSON, error(-32001, "Session not found"))),
    "http-asks": Manner(plays=Behaviour(before={"tools/call": (ROOTS, PING, LOG)})),
    "http-modern": Manner(plays=MODERN, sessions=False, strict=True),
    "http-modern-json": Manner(plays=MODERN, sessions=False, strict=True, events=False),
    "http-modern-statuses": Manner(plays=MODERN, sessions=False, events=False, statuses={-32602: 400, -32601: 404}),
    "http-modern-asks": Manner(plays=Behaviour(eras=("modern",), before={"tools/call": (ROOTS, LOG)}), sessions=False),
    "http-dual": Manner(plays=Behaviour(eras=("legacy", "modern")), listens=False),
}

OTHERS: dict[str, Callable[[], SseServer | SocketServer]] = {
    "sse-2024": lambda: SseServer(serving(BEHAVIOURS["speaks-2024-11-05"])),
    "websocket": lambda: SocketServer(serving(Behaviour())),
    "websocket-without-protocol": lambda: SocketServer(serving(Behaviour()), subprotocol=None),
    "websocket-deaf-to-the-probe": lambda: SocketServer(serving(Behaviour(deaf=True))),
    "websocket-modern": lambda: SocketServer(serving(MODERN)),
}
"""What is reached in other ways."""


def serving(behaviour: Behaviour) -> Callable[[MemoryPeer], Awaitable[int]]:
    """Return what plays a behaviour behind one connection of a fake transport."""

    async def serve(peer: MemoryPeer) -> int:
        player, lines = Player(behaviour), Lines(peer)
        try:
            while (arrived := await lines.read()) is not None:
                for line in arrived:
                    for step in player.take(line):
                        if isinstance(step, bytes):
                            await peer.write(step)
                        else:
                            await trio.sleep(step)
        except SystemExit:
            return 1
        return 0

    return serve


@dataclass
class BehavingRemote:
    """A server behind HTTP.

    `left`: sessions that it knows; `minted`: those of them that it gave to a probe; `wrong`: what it should not have
    got.
    """

    manner: Manner
    left: set[str] = field(default_factory=set)
    minted: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    _calls: Counter[str] = field(default_factory=Counter)
    _given: int = 0
    _players: dict[str, Player] = field(default_factory=dict)

    def server(self) -> RemoteServer:
        """Return it, to be run."""
        return RemoteServer(serving(self.manner.plays), {"POST": self._post, "GET": self._get, "DELETE": self._delete})

    def _new(self) -> dict[str, str]:
        self._given += 1
        session = f"session-{self._given}"
        self.left.add(session)
        self._players[session] = Player(self.manner.plays)
        return {"mcp_session_id": session}

    async def _get(self, request: Request) -> None:
        if not self.manner.listens:
            await respond(request, (self.manner.deaf, "", b""))
            return
        await request.begin_events()
        await trio.sleep_forever()

    async def _delete(self, request: Request) -> None:
        for sessions in (self.left, self.minted):
            sessions.discard(request.headers.get(SESSION, ""))
        await respond(request, (self.manner.ended, "", b""))

    async def _post(self, request: Request) -> None:
        manner, session = self.manner, request.headers.get(SESSION, "")
        if manner.strict:
            self.wrong += _odd(request, manner)
        if "id" not in request.message or not request.method:
            list(self._player(session).take(request.body))
            await respond(request, manner.accepted)
        elif request.method == "server/discover" and manner.probe is not None:
            headers = self._new() if manner.mints else {}
            self.minted.update(headers.values())
            await respond(request, manner.probe, headers)
        elif self._forgets(request, session):
            await respond(request, manner.forgets or NOTHING)
        else:
            headers = self._new() if manner.sessions and request.method == "initialize" else {}
            await self._answer(request, self._player(headers.get("mcp_session_id", session)), headers)

    def _player(self, session: str) -> Player:
        return self._players.setdefault(session, Player(self.manner.plays))

    def _forgets(self, request: Request, session: str) -> bool:
        if self.manner.forgets is None or not session:
            return False
        self._calls[session] += request.method == "tools/call"
        if self._calls[session] == 3:
            self.left.discard(session)
        return session not in self.left

    async def _answer(self, request: Request, player: Player, headers: dict[str, str]) -> None:
        said = b"".join(step for step in player.take(request.body) if isinstance(step, bytes)).splitlines()
        answer: dict[str, Any] = next((json.loads(text) for text in said if b'"method"' not in text), {})
        status = self.manner.statuses.get(answer.get("error", {}).get("code"), 200)
        json_kind, events_kind = self.manner.kinds
        if answer and (status != 200 or not self.manner.events):
            await respond(request, (status, json_kind, json.dumps(answer).encode()), headers)
            return
        await request.begin_events(events_kind, **headers)
        await request.stream.send_all(self.manner.preface)
        for text in said:
            await request.event(text)
        if not answer:  # a subscription
            await trio.sleep_forever()


async def respond(request: Request, said: Said, headers: Mapping[str, str] | None = None) -> None:
    """Give a whole answer; the connection ends with it."""
    status, kind, body = said
    await request.respond(status, body, kind, connection="close", **(headers or {}))


def _odd(request: Request, manner: Manner) -> list[str]:
    """Return what of a request is not as the specification wants it."""
    wanted = {"content-type": JSON, "accept": f"{JSON}, {EVENTS}"}
    if "modern" in manner.plays.eras:
        wanted |= {VERSION: "2026-07-28", "mcp-method": request.method, SESSION: ""}
        if request.method == "tools/call":
            wanted["mcp-name"] = request.message["params"]["name"]
    elif request.method == "initialize":
        wanted |= {VERSION: "", SESSION: ""}
    elif request.method != "server/discover":
        wanted[VERSION] = manner.plays.version
    given = {name: request.headers.get(name, "") for name in wanted}
    return [f"{request.method}: {name}: {given[name]!r}" for name in wanted if given[name] != wanted[name]]
