"""Whether the head of a call repeats the arguments that its tool wants repeated there (`x-mcp-header`). PURE.

(MCP 2026-07-28, basic/transports/streamable-http "Custom Headers from Tool Parameters".) What a server gets is made of
the arguments alone; this tells a client whose head says something else than its body, before anybody acts on either.
"""

from __future__ import annotations

import msgspec

from actors.codes import HEADER_MISMATCH
from actors.protocol.wire.mirrors import Mirror, agree, arguments_in
from supervisor.front.edge.fields import Fields
from supervisor.front.http.heads.head import header_text
from supervisor.front.mcp.messages import Invalid, ModernRequest


def disagreement(mirrors: tuple[Mirror, ...], message: ModernRequest, fields: Fields) -> Invalid | None:
    arguments = arguments_in(mirrors, message.params)
    for mirror in mirrors:
        name = mirror.field.encode("latin-1")
        if name in fields.doubled:
            problem = "may be there only once, for"
        else:
            problem = _problem(fields.lines.get(name), arguments.get(mirror.field))
        if problem:
            where = ".".join(mirror.path)[:200]
            text = f"the header {mirror.field} {problem} the argument {where!r}"
            return Invalid(id=message.id, code=HEADER_MISMATCH, message=text)
    return None


def _problem(value: bytes | None, argument: msgspec.Raw | None) -> str:
    text = None if value is None else header_text(value)
    if agree(argument, text) and (text is not None or value is None):
        return ""
    if argument is None or bytes(argument) == b"null":
        return "is there without"
    return "is missing, which repeats" if value is None else "does not equal"
