"""Results of servers as clients of a revision can take them. Pure.

Nearly all can be taken as they are: that is seen by a scan of the bytes. Of the others every member that is not named
here keeps its bytes and its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from actors.protocol.agreement.versions import LATEST_LEGACY, LEGACY_VERSIONS
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.service.fitting import blocks, structured, tool_definitions

_CALLED: Final = {version: (structured.MARK, *blocks.MARKS[version]) for version in LEGACY_VERSIONS}
"""What a result of a tool has, by revision, that clients of it may not take as it is."""
NO_DEFINITION: Final = msgspec.Raw(b"")

Members = dict[str, msgspec.Raw]
Known = Callable[[msgspec.Raw, str], msgspec.Raw]


class Shown(msgspec.Struct, frozen=True):
    """Who gets a result: a client of `version` that asked for `method`.

    `definition` is that of the tool that it called, if it was shown to it.
    """

    method: str
    version: str
    definition: msgspec.Raw = NO_DEFINITION

    @property
    def wrapped(self) -> bool:
        """Whether the client was told that the tool's results are objects with a `result`."""
        return tool_definitions.is_projected(self.definition, self.version)


def may_not_fit(body: bytes, to: Shown) -> bool:
    """Say whether a result may have what its client cannot take; a scan of its bytes."""
    match to.method:
        case "tools/call" if to.version <= LATEST_LEGACY and blocks.holds(body, _CALLED[to.version]):
            odd = structured.MARK in body and structured.may_not_fit(body, to.version, wrapped=to.wrapped)
            return odd or blocks.mentions_unknown(body, to.version)
        case "prompts/get":
            return blocks.mentions_unknown(body, to.version)
    return False


def fit_result(body: bytes, to: Shown) -> bytes:
    """Return a result as its client can take it: the same bytes if it can.

    Raises `UnreadableJson` for what is nested too deeply to be read.
    """
    if not may_not_fit(body, to):
        return body
    try:
        members = json.read(json.MEMBERS, body)
    except json.OtherShape:  # no object: whoever reads it may judge
        return body
    if to.method == "prompts/get":
        changed = _fit_list(members, "messages", _known_message, to.version)
    else:
        changed = structured.fit(members, to.version, wrapped=to.wrapped)
        changed = _fit_list(changed, "content", blocks.fit, to.version)
    return body if changed is members else encode(changed)


def _fit_list(members: Members, name: str, known: Known, version: str) -> Members:
    """Return members with what is in the list `name` as a client knows it; the same object if nothing changes."""
    if name not in members or not blocks.mentions_unknown(bytes(members[name]), version):
        return members
    if (listed := json.read_or(json.ELEMENTS, members[name], None)) is None:
        return members
    fitted_list = [known(item, version) for item in listed]
    if all(new is old for new, old in zip(fitted_list, listed, strict=True)):
        return members
    return {**members, name: msgspec.Raw(encode(fitted_list))}


def _known_message(message: msgspec.Raw, version: str) -> msgspec.Raw:
    """Return a message of a prompt whose content a client knows."""
    if (members := json.read_or(json.MEMBERS, message, None)) is None:
        return message
    content = members.get("content")
    block = blocks.fit(content, version) if content is not None else content
    return message if block is content else msgspec.Raw(encode({**members, "content": block}))
