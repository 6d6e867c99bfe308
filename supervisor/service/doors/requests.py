"""Requests that are passed on as they are: their params taken apart as little as that needs. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from actors.codes import NAMED_BY
from actors.errors import InvalidArguments
from actors.protocol.asking.input_required import RESPONSES, STATE, Retry
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode

NO_META: Final = msgspec.Raw(b"")
MAX_NAME_CHARS: Final = 8192

METHOD: Final = re.compile(r"[A-Za-z0-9_$.-]+(?:/[A-Za-z0-9_$.-]+)*")
MAX_METHOD_CHARS: Final = 128


class Parts(NamedTuple):
    """The params of a request: JSON members without braces, `_meta` and `task`, both of these, and what it is about.

    `task` is what a call of a tool says of the task that it shall be; empty if it says nothing.
    """

    members: bytes
    meta: msgspec.Raw
    name: str
    task: msgspec.Raw = NO_META


def parts_of(method: str, params: msgspec.Raw, retry: Retry | None = None) -> Parts:
    """Return the parts of params, which are an object or empty, without what belongs to a `retry`, if it is one.

    Raises `InvalidArguments`.
    """
    text = bytes(params)
    if not text:
        return Parts(b"", NO_META, "")
    about = NAMED_BY.get(method)
    # A key may be spelled in another way, but that takes an escape.
    if about is None and b'"_meta"' not in text and b"\\" not in text:
        return Parts(text.strip()[1:-1].strip(), NO_META, "")
    members = members_of(params)
    meta = members.pop("_meta", NO_META)
    if retry is not None:
        members.pop(RESPONSES, None)
        members.pop(STATE, None)
    task = members.pop("task", NO_META) if method == "tools/call" else NO_META
    return Parts(encode(members)[1:-1], meta, text_of(members.get(about)) if about is not None else "", task)


def members_of(params: msgspec.Raw, what: str = "'params'") -> dict[str, msgspec.Raw]:
    """Return the members of params, or of `what` is in them, each as it was written. Raises `InvalidArguments`."""
    try:
        return json.read(json.MEMBERS, params) if bytes(params) else {}
    except json.UnreadableJson:
        raise InvalidArguments(f"{what} must be an object") from None


def text_of(value: msgspec.Raw | None) -> str:
    """Return the value of a JSON string, cut; empty for anything else: the server may judge it."""
    return json.read_or(json.STRING, b"" if value is None else value, "")[:MAX_NAME_CHARS]


def is_method(method: str) -> bool:
    """Say whether a name can be that of a method of a server: it is written into heads of HTTP, too."""
    return len(method) <= MAX_METHOD_CHARS and METHOD.fullmatch(method) is not None
