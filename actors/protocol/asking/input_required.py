"""Results that are not complete: what a server wants to know first, and how the request is made again. Pure.

(MCP 2026-07-28, basic/patterns/mrtr.) Questions and answers stay the bytes they arrived as.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from actors.errors import MalformedRequest, ProtocolViolation
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode

METHODS: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests that may be answered so."""
KIND: Final = "input_required"
MAX_REQUESTS: Final = 32
"""Questions at a time."""
MAX_BYTES: Final = 4 * 1024 * 1024
"""Of such a result, its state included, and of all answers to it: there may be images in them."""
RESPONSES: Final = "inputResponses"
STATE: Final = "requestState"


class InputRequest(msgspec.Struct, frozen=True):
    """One question: a request without an id."""

    method: str
    params: msgspec.Raw = msgspec.Raw(b"{}")


class InputRequired(msgspec.Struct, frozen=True):
    """What a server wants to know, by keys of its own. `state` is the JSON text of a string; empty if there is none."""

    requests: dict[str, InputRequest] = msgspec.field(name="inputRequests", default_factory=dict)
    state: msgspec.Raw = msgspec.field(name=STATE, default=json.NO_RAW)


class Retry(msgspec.Struct, frozen=True):
    """What a request says that is made again: its answers and the state, as JSON texts; empty where there is none.

    `ours`: the state can be none of the server's.
    """

    responses: msgspec.Raw = msgspec.field(name=RESPONSES, default=json.NO_RAW)
    state: msgspec.Raw = msgspec.field(name=STATE, default=json.NO_RAW)
    ours: bool = False

    def members(self) -> bytes:
        """Return them as JSON members without braces."""
        parts = ((RESPONSES, self.responses), (STATE, self.state))
        return b",".join(b'"%b":%b' % (name.encode(), bytes(value)) for name, value in parts if bytes(value))


_MARK: Final = KIND.encode()
_required = msgspec.json.Decoder(InputRequired)


def kind_of(result: msgspec.Raw) -> str:
    return json.text_at(result, "resultType")


def is_incomplete(result: msgspec.Raw) -> bool:
    return _MARK in bytes(result) and kind_of(result) == KIND


def read(result: msgspec.Raw) -> InputRequired:
    """Return what an incomplete result asks for. Raises `ProtocolViolation`, which says what is wrong with it."""
    if len(result) > MAX_BYTES:
        raise ProtocolViolation(f"asked for input with {len(result)} bytes, {MAX_BYTES} are the most")
    try:
        required = json.read(_required, result)
    except json.UnreadableJson:
        raise ProtocolViolation("asked for input in a way that cannot be read") from None
    if len(required.requests) > MAX_REQUESTS:
        raise ProtocolViolation(f"asked for {len(required.requests)} inputs at once, {MAX_REQUESTS} are the most")
    if not required.requests and not bytes(required.state):
        raise ProtocolViolation("asked for input without saying for which")
    return required


def incomplete_result(requests: Mapping[str, InputRequest], state: str) -> bytes:
    return encode({"resultType": KIND, "inputRequests": requests, STATE: state})


def answers(retry: Retry) -> dict[str, msgspec.Raw]:
    """Return the answers of a client by their keys. Raises `MalformedRequest` for what cannot be any."""
    if not len(retry.responses):
        return {}
    if len(retry.responses) > MAX_BYTES:
        raise MalformedRequest(f"{RESPONSES!r} has {len(retry.responses)} bytes, {MAX_BYTES} are the most")
    try:
        given = json.read(json.MEMBERS, retry.responses)
    except json.UnreadableJson:
        raise MalformedRequest(f"{RESPONSES!r} must be an object") from None
    wrong = next((key for key, answer in given.items() if bytes(answer)[:1] != b"{"), None)
    if wrong is not None:
        raise MalformedRequest(f"{RESPONSES!r}: the answer to {wrong[:100]!r} must be an object")
    return given


def state_of(retry: Retry) -> str:
    """Return the state of a request that is made again; empty if it has none. Raises `MalformedRequest`."""
    if not bytes(retry.state):
        return ""
    try:
        return json.read(json.STRING, retry.state)
    except json.UnreadableJson:
        raise MalformedRequest(f"{STATE!r} must be a string") from None
