"""A line of a server, decoded, or what is certain of one that cannot be: whether it is an answer, and to which request.

The caller of a call must not wait for its deadline because an answer holds `NaN`, is too long or too deep. But no call
may be failed by text that merely looks like its answer: a tool's result can quote anything. Hence the rules:

- Only members of the outermost object count. They are read from the beginning, bracket by bracket, until something does
  not fit; beyond that place nothing is certain.
- It is an answer if it has a `result` or an `error` and no `method`: the ids of a server's own requests may equal ours.
- In a text too long to be read to its end, an id is also believed as the last member before the last bracket, but for
  `jsonrpc`: in JSON a quotation mark inside a string is written `\\"`, so that no string can look like it.

Pure. At most `HEAD_BYTES` and `TAIL_BYTES` are looked at, some 5 ms in the worst case.
"""

from __future__ import annotations

import re
from contextlib import suppress

import msgspec

from actors.errors import ProtocolViolation
from actors.protocol.wire import jsonrpc
from actors.protocol.wire.framing import HEAD_BYTES, TAIL_BYTES, Line, Oversized
from actors.protocol.wire.jsonrpc import canonical
from actors.protocol.wire.weight import TooHeavy

# Every place is matched by something, so that no text is searched for the next token.
_TOKEN = re.compile(
    rb"""\s*+ (?: (?P<string> "[^"\\]*+(?:\\.[^"\\]*+)*+" ) | (?P<mark> [{}\[\],:] ) | (?P<scalar> [^\s"{}\[\],:]++ )
    | (?P<half> " | \Z ) )""",
    re.DOTALL | re.VERBOSE,
)
_LAST_MEMBERS = re.compile(
    rb"""[{,]\s*+ "id" \s*+:\s*+ (?P<id> "[^"\\]{1,256}+" | [0-9.]{1,32}+ ) \s*+
    (?: ,\s*+"jsonrpc"\s*+:\s*+"2\.0"\s*+ )? \} \s*+ \Z""",
    re.VERBOSE,
)
_ID = re.compile(rb'"[^"\\]{0,256}"|-?[0-9]{1,18}')
_OPENED_BY = {b"}": b"{", b"]": b"["}
_ANSWERS = frozenset({b'"result"', b'"error"'})


class Fragment(msgspec.Struct, frozen=True):
    """An answer that cannot be decoded. `id` as `ids.canonical` has it; `result`: it tells of no error."""

    id: bytes
    result: bool


def read_fragment(line: Line) -> Fragment | None:
    """Return what is certain of an answer; None if it is not certain that it is one, or to what."""
    if isinstance(line, Oversized):
        head, tail = line.head, line.tail
    else:
        head, tail = line[:HEAD_BYTES], line[-TAIL_BYTES:]
    outermost = _Outermost(head, whole=head == line)
    members = outermost.members
    if outermost.doubtful or b'"method"' in members or not _ANSWERS & members.keys():
        return None
    id_ = members.get(b'"id"', b"")
    if not id_ and outermost.last_name in _ANSWERS:
        id_ = _last_id(tail)
    own = canonical(id_)
    return Fragment(own, b'"error"' not in members) if own else None


def request_id(text: bytes) -> bytes:
    """Return the JSON text of the id of a request that is not decoded, `null` if its beginning has none."""
    outermost = _Outermost(text[:HEAD_BYTES], whole=len(text) <= HEAD_BYTES)
    id_ = outermost.members.get(b'"id"', b"")
    return id_ if _ID.fullmatch(id_) and not outermost.doubtful else b"null"


def _last_id(tail: bytes) -> bytes:
    members = _LAST_MEMBERS.search(tail)
    return b"" if members is None or b'"method"' in tail else members["id"]


class _Outermost:
    """The members of the outermost object, as far as they can be read: name to text, `{` or `[` for what is nested.

    `last_name`: the member in whose value the text ended, empty if it did not. `doubtful`: a name is written with
    escapes or comes twice, so that others may read it differently.
    """

    def __init__(self, text: bytes, *, whole: bool) -> None:
        self.members: dict[bytes, bytes] = {}
        self.last_name = b""
        self.doubtful = False
        self._open: list[bytes] = []
        self._name = b""
        self._wanted = "object"
        for token in _TOKEN.finditer(text):  # pragma: no branch - the end of the text is a `half`
            kind, part = token.lastgroup, token[0].strip()
            if kind == "half" or (kind == "scalar" and token.end() == len(text) and not whole):
                break
            if not (self._nested(part) if len(self._open) > 1 else self._outer(kind, part)):
                return
        if len(self._open) > 1 or self._wanted == "value":
            self.last_name = self._name
            self.members.setdefault(self._name, b"")

    def _nested(self, part: bytes) -> bool:
        """Skip what is in a value; False where a bracket does not fit."""
        if part in (b"{", b"["):
            self._open.append(part)
        elif part in _OPENED_BY:
            return self._open.pop() == _OPENED_BY[part]
        return True

    def _outer(self, kind: str | None, part: bytes) -> bool:
        """Take a token of the outermost object; False where it does not fit, or ends it."""
        match self._wanted, kind, part:
            case "object", _, b"{":
                self._open.append(part)
                self._wanted = "name or end"
            case "name or end" | "name", "string", _:
                self._name = part
                self.doubtful |= b"\\" in part or part in self.members
                self._wanted = "colon"
            case "colon", _, b":":
                self._wanted = "value"
            case "value", "string" | "scalar", _:
                self.members[self._name] = part
                self._wanted = "comma or end"
            case "value", _, b"{" | b"[":
                self.members[self._name] = part
                self._open.append(part)
                self._wanted = "comma or end"
            case "comma or end", _, b",":
                self._wanted = "name"
            case _:
                return False
        return True


class DecodedLine(msgspec.Struct, frozen=True):
    """A large line, decoded in a thread, so that it holds up nobody: its `envelope`, or the `members` of a batch.

    `trouble`: why it cannot be used. `too_heavy`: that is why. Then `fragment` is what is certain of it all the same.
    """

    text: bytes
    envelope: jsonrpc.JsonRpcMessage | None = None
    members: tuple[DecodedLine, ...] = ()
    trouble: str = ""
    too_heavy: bool = False
    fragment: Fragment | None = None


Message = Line | DecodedLine


def text_of(message: bytes | DecodedLine) -> bytes:
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
        with suppress(ProtocolViolation):  # it is no batch either; nor is an empty one (JSON-RPC 2.0, section 6)
            if members := tuple(decode_line(member) for member in jsonrpc.members(line)):
                return DecodedLine(line, members=members)
    return DecodedLine(line, trouble=trouble, fragment=read_fragment(line))
