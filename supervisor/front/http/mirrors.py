"""Whether the head of a call repeats the arguments that its tool wants repeated there (`x-mcp-header`). PURE.

(MCP 2026-07-28, basic/transports/streamable-http "Custom Headers from Tool Parameters".) What a server gets is made of
the arguments alone; this tells a client whose head says something else than its body, before anybody acts on either.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from actors.protocol.jsonrpc import HEADER_MISMATCH
from actors.protocol.mirrors import Mirror, agree, arguments_in
from supervisor.front.http.head import header_text
from supervisor.front.mcp.messages import Invalid, ModernRequest

PREFIX: Final = b"mcp-param-"


def disagreement(
    mirrors: tuple[Mirror, ...], message: ModernRequest, headers: Iterable[tuple[bytes, bytes]]
) -> Invalid | None:
    """Return the refusal of a call whose head and arguments disagree; None if they agree."""
    given: dict[str, list[bytes]] = {}
    for name, value in headers:
        if name.startswith(PREFIX):
            given.setdefault(name.decode("latin-1"), []).append(value)
    arguments = arguments_in(mirrors, message.params)
    for mirror in mirrors:
        problem = _problem(given.get(mirror.field, []), arguments.get(mirror.field))
        if problem:
            where = ".".join(mirror.path)[:200]
            text = f"the header {mirror.field} {problem} the argument {where!r}"
            return Invalid(id=message.id, code=HEADER_MISMATCH, message=text)
    return None


def _problem(values: list[bytes], argument: msgspec.Raw | None) -> str:
    if len(values) > 1:
        return "may be there only once, for"
    text = header_text(values[0]) if values else None
    if agree(argument, text) and (text is not None or not values):
        return ""
    if argument is None or bytes(argument) == b"null":
        return "is there without"
    return "does not equal" if values else "is missing, which repeats"
