"""What clients send: requests over HTTP, messages of MCP, frames of a WebSocket, ids and seals that they give back."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from urllib.parse import parse_qsl

import msgspec
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Message, Ping
from wsproto.utilities import RemoteProtocolError

from actors.catalogue.criteria import Criteria
from actors.errors import InvalidArguments, SupervisorError
from actors.principal import LOCAL
from actors.protocol.agreement import capabilities
from actors.protocol.wire import json
from actors.protocol.wire.mirrors import mirrors_in
from supervisor.config import Settings
from supervisor.events.event import Places
from supervisor.front import messages
from supervisor.front.admission import read_cookie, read_credential, read_ticket
from supervisor.front.edge.fields import Fields
from supervisor.front.edge.parser import MAX_HEAD_BYTES, HttpProtocolError, IncomingRequest, RequestParser
from supervisor.front.guard import CrossOrigin, Guard, TrustedProxies, is_preflight, preflight_lines
from supervisor.front.http.heads import disagreement, refusal, scan
from supervisor.front.http.sessions import SealBroken, Sealer, SessionClaims
from supervisor.front.http.streams import Redelivery
from supervisor.front.listen import read_subscription
from supervisor.front.messages import fit_text, json_bytes, read_cancelled, read_initialize, read_level
from supervisor.front.pages.requests import Unreadable, decode, read_form
from supervisor.identity.operator_key import OperatorKey, is_proof
from supervisor.identity.tokens import digest_of
from supervisor.metatools.inventory import decode_cursor
from supervisor.service.asking.rounds import SealedNames
from supervisor.tracing.context import read_head, read_params
from tests.fuzz.target import holds, parts_of, same, text_of

KEY = hashlib.sha256(b"a key of the fuzzer").digest()
_GUARD = Guard("127.0.0.1", [3001], ["a.example"], ["https://b.example"])
_CROSS = CrossOrigin(["https://b.example"])
_PROXIES = TrustedProxies(["127.0.0.0/8", "fd00::/8"])
_MIRRORS = mirrors_in({"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}})

Asked = tuple[str, bytes, list[tuple[bytes, bytes]], bytes]


def _requests(*parts: bytes) -> tuple[list[Asked], int]:
    """Return the complete requests in bytes that arrive in parts, and the status of what is refused, 0 for nothing."""
    parser = RequestParser()
    said: list[Asked] = []
    now: IncomingRequest | None = None
    try:
        for part in parts:
            parser.add(part)
            while True:
                if now is None and (now := parser.next()) is None:
                    break
                while parser.go_on():
                    pass
                if not now.complete:
                    break
                said.append((now.method, now.target, now.headers, b"".join(now.parts)))
                if now.upgrade:
                    return said, 0
                now = None
    except HttpProtocolError as error:
        holds(str(error))
        return said, error.status
    finally:
        parser.close()
    return said, 0


def requests(data: bytes) -> None:
    """Find requests: the same ones however the bytes arrive; what their heads say is read without an error."""
    found, status = _requests(data)
    assert status in (0, 400, 405, 431, 501, 505)
    for pieces in ([data[: len(data) // 2], data[len(data) // 2 :]], [data[at : at + 1] for at in range(len(data))]):
        if len(data) > MAX_HEAD_BYTES // 8:
            break
        again, other = _requests(*pieces)
        same(again[: len(found)], found)  # what is refused may be seen earlier, or only later
        assert status == 0 or other != 0
    parser = RequestParser()
    with suppress(HttpProtocolError):
        parser.add(data)
        if (now := parser.next()) is not None:
            head(now.fields, now.target)
    parser.close()


def head(fields: Fields, target: bytes) -> None:
    """Read what decides something in the head of a request."""
    refused = _GUARD.check(fields, target)
    if refused is not None:
        assert json.is_json(refused.body())
    for is_websocket in (False, True):
        read_credential(fields, target.partition(b"?")[2], is_websocket=is_websocket)
    read_ticket(target)
    read_cookie(fields, "session")
    read_head(fields.lines)
    _PROXIES.sender("127.0.0.1", fields)
    _CROSS.lines(fields)
    is_preflight("OPTIONS", fields)
    preflight_lines(fields)
    said = scan(fields)
    message = messages.read(fields.lines.get(b"x-body", b"{}"))
    wrong = refusal(said, message)
    assert wrong is None or json.is_json(wrong.answer())
    if isinstance(message, messages.ModernRequest):
        disagreement(_MIRRORS, message, fields)


def client_messages(data: bytes) -> None:
    """Read one message: it is one of those that there are, and what is refused has an answer in JSON."""
    message = messages.read(data)
    for one in message.messages if isinstance(message, messages.Batch) else (message,):
        if isinstance(one, messages.Invalid):
            answer = one.answer()
            assert json.is_json(answer)
            assert len(answer) < 16 * 1024
        elif isinstance(one, messages.Request | messages.Notification):
            _params(one.params)


def _params(params: msgspec.Raw) -> None:
    for read in (read_initialize, read_level):
        with suppress(InvalidArguments):
            read(params)
    read_cancelled(params)
    with suppress(SupervisorError):
        wanted = read_subscription(b"1", params)
        assert json.is_json(wanted.acknowledge(wanted.uris))
    read_params(bytes(params))
    declared = json.at(params, "capabilities")
    if declared:
        assert json.is_json(capabilities.forwardable(declared))
        for method in ("elicitation/create", "sampling/createMessage", "roots/list"):
            lacks = capabilities.missing_capability(declared, method, params)
            assert not lacks or capabilities.requirement(lacks)
    capabilities.mode_of(params)
    text = json.text_at(params, "name")
    assert json_bytes(fit_text(text, 20)) <= 20


def frames(data: bytes) -> None:
    """Take the frames of a WebSocket, as the edge does: what breaks the protocol is a typed error of the library."""
    for kind in (ConnectionType.SERVER, ConnectionType.CLIENT):
        library = Connection(kind)
        try:
            library.receive_data(data)
            for event in library.events():
                if isinstance(event, Ping):
                    library.send(event.response())
                elif isinstance(event, Message):
                    assert len(event.data) <= len(data)
                elif isinstance(event, CloseConnection):
                    break
        except RemoteProtocolError as error:
            holds(str(error))


_SEALER, _NAMES, _PLACES = Sealer(KEY), SealedNames(KEY, b"fuzz", "p-"), Places("17", KEY)
_SEALED = _SEALER.seal(
    SessionClaims(
        nonce=KEY[:16],
        version="2025-11-25",
        client_name="c",
        client_version="1",
        capabilities=msgspec.Raw(b"{}"),
        principal=LOCAL,
        issued_at=0.0,
        expires_at=9.0,
    )
)


def sealed(data: bytes) -> None:
    """Read ids that clients give back: nothing but what was sealed here is taken, whoever wrote it."""
    text = text_of(data)
    for door in ("", "a"):
        with suppress(SealBroken):
            _SEALER.unseal(text, 0.0, door)
            raise AssertionError("a seal was forged")
    assert not _NAMES.is_given(text, "o")
    assert not _NAMES.is_of_this_run(text)
    for member in (None, "u"):
        number = _PLACES.read(text, member)  # type: ignore[arg-type]  # a principal is a text
        assert number is None or number >= 0
    keeper = Redelivery(Settings(), lambda: 0.0)
    track = keeper.begin("s", b"1", primed=False)
    found = keeper.find("s", data)
    assert found is None or (found[0] is track and found[1] >= 0)
    with suppress(InvalidArguments):
        decode_cursor(text)
    digest_of(text)
    assert not OperatorKey(KEY, b"boot", lambda: 0.0).admits(text, "e", "GET", "/")
    assert not is_proof(KEY, text, text, "e")
    if (
        data[:1]
        and data[0] < len(_SEALED)
        and (changed := _SEALED[: data[0]] + text[1:2] + _SEALED[data[0] + 1 :]) != _SEALED
    ):
        with suppress(SealBroken):
            _SEALER.unseal(changed, 0.0)
            raise AssertionError("a changed seal was taken")


def pages(data: bytes) -> None:
    """Read what a browser sends of a form, and the query of a page: values, or an error that the page shows."""
    kind, body = parts_of(data, 2)
    with suppress(Unreadable):
        typed, files = read_form(text_of(kind), body)
        assert typed["action"] in (["accept"], ["decline"])
        assert all(text.isascii() for text in files.values())
    with suppress(InvalidArguments):
        decode(parse_qsl(text_of(body), keep_blank_values=True), Criteria)


TARGETS = {
    "requests": requests,
    "client_messages": client_messages,
    "frames": frames,
    "sealed": sealed,
    "pages": pages,
}
