"""A large line of a server, decoded before its actor sees it: in a thread, so that it holds up nobody. PURE."""

from __future__ import annotations

import msgspec

from actors.errors import ProtocolViolation
from actors.protocol.wire import jsonrpc
from actors.protocol.wire.fragment import Fragment, read_fragment
from actors.protocol.wire.framing import Line
from actors.protocol.wire.weight import TooHeavy


class DecodedLine(msgspec.Struct, frozen=True):
    """A line that was decoded: its `envelope`, or the `members` of a batch, or why it cannot be used, its `trouble`.

    `too_heavy`: that is why. Then `fragment` is what is certain of it all the same.
    """

    text: bytes
    envelope: jsonrpc.JsonRpcMessage | None = None
    members: tuple[DecodedLine, ...] = ()
    trouble: str = ""
    too_heavy: bool = False
    fragment: Fragment | None = None


Message = Line | DecodedLine


def text_of(message: bytes | DecodedLine) -> bytes:
    """Return the line as it came."""
    return message.text if isinstance(message, DecodedLine) else message


def decode_line(line: bytes) -> DecodedLine:
    """Return what a line is. Raises nothing."""
    try:
        return DecodedLine(line, jsonrpc.decode(line))
    except TooHeavy as error:
        return DecodedLine(line, trouble=error.message, too_heavy=True, fragment=read_fragment(line))
    except ProtocolViolation as error:
        trouble = error.message
    if line.lstrip()[:1] == b"[":
        try:
            return DecodedLine(line, members=tuple(decode_line(member) for member in jsonrpc.members(line)))
        except ProtocolViolation:  # it is no batch either
            pass
    return DecodedLine(line, trouble=trouble, fragment=read_fragment(line))
