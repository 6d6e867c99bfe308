"""Whether the head of a call repeats the arguments that its tool wants repeated there (`x-mcp-header`). PURE.

(MCP 2026-07-28, basic/transports/streamable-http "Custom Headers from Tool Parameters".) What a server gets is made of
the arguments alone; this tells a client whose head says something else than its body, before anybody acts on either.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from actors.protocol.jsonrpc import HEADER_MISMATCH
from actors.protocol.mirrors import Mirror, mirrored
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
    arguments = mirrored(mirrors, b'{"params":' + bytes(message.params) + b"}")
    for mirror in mirrors:
        problem = _problem(given.get(mirror.field, []), arguments.get(mirror.field))
        if problem:
            where = ".".join(mirror.path)[:200]
            text = f"the header {mirror.field} {problem} the argument {where!r}"
            return Invalid(id=message.id, code=HEADER_MISMATCH, message=text)
    return None


def _problem(values: list[bytes], argument: str | None) -> str:
    if len(values) > 1:
        return "may be there only once, for"
    if argument is None:
        return "is there without" if values else ""
    if not values:
        return "is missing, which repeats"
    text = header_text(values[0])
    return "" if text is not None and (text == argument or _same_number(text, argument)) else "does not equal"


def _same_number(text: str, argument: str) -> bool:
    """Say whether a text is the number of an integer argument, in other digits: `42.0` is 42."""
    try:
        return len(text) <= 32 and float(text) == int(argument) and argument == str(int(argument))
    except ValueError:
        return False
