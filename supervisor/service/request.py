"""One request for a server: what the client asked for, as far as a server gets it, and how its answer is wanted.

Its params are taken apart as little as that needs.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from actors.catalogue.offer import Tool
from actors.codes import MAY_BE_NAMED_BY, NAMED_BY
from actors.errors import InvalidArguments, MalformedRequest, UnknownMethod
from actors.protocol.agreement.versions import Era
from actors.protocol.asking.input_required import RESPONSES, STATE, Retry
from actors.protocol.listing import LISTED_BY
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.host.workbench import Workbench
from supervisor.service.asking.exchange import Exchange
from supervisor.service.tasks import HeldTask

NO_META: Final = msgspec.Raw(b"")
MAX_NAME_CHARS: Final = 8192
PARAMS_COST: Final = 64
"""So many bytes of params, or of contents, cost as much as one that a model wrote."""
_MEANT: Final = frozenset(("name", "uri", "taskId", "arguments", "task", "_meta", RESPONSES, STATE))
"""Members of params by which it is decided whether a request may be made, and what is shown of it."""
_FOLDED: Final = {member.casefold(): member for member in _MEANT}
OURS: Final = frozenset({*NAMED_BY, *LISTED_BY, "completion/complete"})
"""Methods that are passed on and whose params are the protocol's: none of their members may be null."""
METHOD: Final = re.compile(r"[A-Za-z0-9_$.-]+(?:/[A-Za-z0-9_$.-]+)*")
MAX_METHOD_CHARS: Final = 128


class ServerRequest(msgspec.Struct, frozen=True):
    """Whose answer it is, and what else is said about it, is in the `Exchange` it belongs to."""

    server: str
    method: str
    members: bytes
    """JSON members of the params, without braces."""
    meta: msgspec.Raw
    """The `_meta` of the client."""
    since: float
    """When the request came, by the trio clock: its deadline counts from there."""
    name: str = ""
    """What it is about: a tool, a prompt, an event type, a URI of the server."""
    uri: str = ""
    """The resource that it is about, as the client wrote it."""
    era: Era | None = None
    """Which era the result is wanted in; that of the client if None."""
    written: Era | None = None
    """The era of the server, where errors reach a client of the same era as they are."""
    by_result: bool = False
    """The client may be asked by what it is answered."""
    labelled: bool = True
    """Questions say who asks."""
    tool: Tool | None = None
    """The one that is called, if the client was shown its definition."""
    as_task: bool = False
    """See `CallServer`."""
    task: HeldTask | None = None
    """The task that it is about."""

    @property
    def tool_name(self) -> str:
        """The server's own name of the tool that is called; empty for other requests."""
        return self.name if self.method == "tools/call" else ""


class Parts(NamedTuple):
    """The params of a request: JSON members without braces, `_meta` and `task`, both of these, and what it is about.

    `task` is what a call of a tool says of the task that it shall be; empty if it says nothing.
    """

    members: bytes
    meta: msgspec.Raw
    name: str
    task: msgspec.Raw = NO_META
    arguments: msgspec.Raw = NO_META
    """Those of a call of a tool, which are among the members, too."""


def parts_of(method: str, params: msgspec.Raw, retry: Retry | None = None) -> Parts:
    """Return the parts of params, which are an object or empty, without what belongs to a `retry`, if it is one.

    Raises `InvalidArguments`.
    """
    text = bytes(params)
    if not text:
        return Parts(b"", NO_META, "")
    # A key may be spelled in another way, but that takes an escape.
    odd = b'"_meta"' in text or b"\\" in text or (b"null" in text and method in OURS)
    if method not in NAMED_BY and method not in MAY_BE_NAMED_BY and not odd:
        return Parts(text.strip()[1:-1].strip(), NO_META, "")
    return parts_from(method, members_of(params), retry)


def parts_from(method: str, members: dict[str, msgspec.Raw], retry: Retry | None = None) -> Parts:
    """Return the parts of these members, which are taken apart themselves; see `parts_of`.

    Servers that read members in whichever capitals, as programs in Go may, would take `Name` for `name`, and run what
    nobody looked at: so there is none beside those that mean something.
    """
    for key in members.keys() - _MEANT:
        if (member := _FOLDED.get(key.casefold())) is not None:
            raise InvalidArguments(f"params have {key[:40]!r}, which some servers take for {member!r}; leave it out")
    if method in OURS:  # null is no value of theirs, but some clients write every member
        for key in [key for key, value in members.items() if bytes(value) == b"null"]:
            del members[key]
    meta = members.pop("_meta", NO_META)
    if retry is not None:
        members.pop(RESPONSES, None)
        members.pop(STATE, None)
    task = members.pop("task", NO_META) if method == "tools/call" else NO_META
    member = NAMED_BY.get(method) or MAY_BE_NAMED_BY.get(method, "")
    name = json.text_at(members.get(member))[:MAX_NAME_CHARS]
    return Parts(encode(members)[1:-1], meta, name, task, members.get("arguments", NO_META))


def with_name(parts: Parts, name: str) -> Parts:
    """Return the parts of a request that is about what has another name."""
    members = {**json.MEMBERS.decode(b"{%b}" % parts.members), "name": msgspec.Raw(encode(name))}
    return parts._replace(members=encode(members)[1:-1], name=name)


async def named_params(bench: Workbench, exchange: Exchange, member: str) -> tuple[dict[str, msgspec.Raw], str]:
    """Return the params of a request, and what they are about. Raises `InvalidArguments`."""
    params = exchange.params
    members = await bench.run(len(params) // PARAMS_COST, members_of, params)
    name = json.text_at(members.get(member))
    if not name:
        raise MalformedRequest(f"{exchange.method}: params need a {member!r}")
    return members, name


def members_of(params: msgspec.Raw) -> dict[str, msgspec.Raw]:
    """Return the members of params, each as it was written. Raises `InvalidArguments`."""
    try:
        return json.read(json.MEMBERS, params) if bytes(params) else {}
    except json.UnreadableJson:
        raise InvalidArguments("'params' must be an object") from None


def is_method(method: str) -> bool:
    """Say whether a name can be that of a method of a server: it is written into heads of HTTP, too."""
    return len(method) <= MAX_METHOD_CHARS and METHOD.fullmatch(method) is not None


def unknown_method(exchange: Exchange) -> UnknownMethod:
    version = exchange.client.version
    return UnknownMethod(f"there is no method {exchange.method[:100]!r} here, in protocol version {version}")
