"""A result that is over its budget of tokens as a model gets it: its beginning, its shape, its size, and where the
rest is. Pure.

What is no text (images, audio, links, bytes) stays. Whatever of the result is text becomes one text: the texts of
its blocks, or the structured content, where that says the same; both, where they differ. The members that are not named
here stay as they were, so a result that failed still says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from actors.kit.decoding import GivesWay
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from actors.protocol.wire.outline import weight
from actors.protocol.wire.weight import MAX_WEIGHT
from supervisor.metatools.texts import escape, estimate_tokens

SCHEME: Final = "mcpvisor-result://"
"""Of the addresses of kept results."""

# A text that is read by lines: of which size it is, what fits a budget of tokens, where words are.
#
# JSON is kept indented, as tools mostly write it on one line. A line over `WRAP` bytes counts as several, so that each
# fits any budget. Every step is bounded, in pieces between which other threads run.

WRAP: Final = 500
MAX_BYTES: Final = 4 * 1024 * 1024
"""Of a longer text the beginning is kept: about a million tokens."""
_MAX_WEIGHT: Final = MAX_WEIGHT // 2
"""Of JSON of which values are made: it has been read once as a message, and is read again for each path."""
_PIECE: Final = 65_536
_SAMPLES: Final = 8
_CONTINUATION, _CONTINUES = 0xC0, 0x80
_ESCAPE: Final = len(r"\u0000")
_HIGH, _LOW = re.compile(rb"\\u[dD][89abAB]"), re.compile(rb"\\u[dD][c-fC-F]")
"""The escapes of one character that is written as two (RFC 8259 section 7)."""

Starts = npt.NDArray[np.uint32]


class LongText(msgspec.Struct, frozen=True, eq=False):
    """`text` is UTF-8, `starts` where each line begins. `size`: the bytes there were, before the end was cut off."""

    text: bytes
    starts: Starts
    is_json: bool
    size: int

    @property
    def lines(self) -> int:
        return len(self.starts)

    @property
    def memory(self) -> int:
        return len(self.text) + self.starts.nbytes

    def between(self, first: int, last: int) -> bytes:
        """Return lines, counted from 1, both included; none where `last` is before `first`."""
        end = len(self.text) if last >= self.lines else int(self.starts[last])
        return self.text[int(self.starts[first - 1]) : end] if 1 <= first <= min(last, self.lines) else b""

    def last_within(self, first: int, last: int, tokens: int) -> int:
        """Return the last of these lines up to which all are within so many tokens; the first one in any case."""
        for number in range(first, min(last, self.lines) + 1):
            tokens -= estimate_tokens(as_text(self.between(number, number)))
            if tokens < 0:
                return max(first, number - 1)
        return min(last, self.lines)

    def lines_with(self, words: str, first: int, last: int) -> Iterator[int]:
        """Yield the numbers of the lines that have these words; of ASCII letters the case does not matter."""
        sought = re.compile(re.escape(words.encode()), re.IGNORECASE)
        number, end, turns = first, min(last, self.lines), GivesWay()
        while number <= end:
            turns.between()
            until = min(end, int(self.starts.searchsorted(np.uint32(self.starts[number - 1] + _PIECE))))
            until = max(until, number)
            piece, offset = self.between(number, until), int(self.starts[number - 1])
            seen = 0
            for match in sought.finditer(piece):
                at = int(self.starts.searchsorted(np.uint32(offset + match.start()), side="right"))
                if at > seen:
                    seen = at
                    yield at
            number = until + 1

    def value(self) -> Any:
        """Return the value of a text that is JSON."""
        return json.VALUE.decode(self.text)


def long_text(text: bytes, more: int = 0) -> LongText:
    """Return a text as it is read by lines; JSON, if it is an object or an array, is indented.

    `more`: so many bytes of it were left out at the end.
    """
    size, indented = len(text) + more, _indent(text)
    kept = text if indented is None else indented
    if len(kept) > MAX_BYTES:
        kept = kept[: _boundary(kept, MAX_BYTES)]
    return LongText(kept, _starts(kept), indented is not None, size)


def unquote(quoted: bytes) -> tuple[bytes, int]:
    """Return what stands between the quotes of a JSON string as UTF-8, and how many bytes that has.

    Of a long one only a beginning of at least `MAX_BYTES` is read, in pieces; then the size is that, and what is left
    as it stands.
    """
    parts: list[bytes] = []
    begin = size = 0
    while begin < len(quoted) and size < MAX_BYTES:
        end = _break(quoted, begin, begin + _PIECE)
        parts.append(json.text_at(b'"%b"' % quoted[begin:end]).encode(errors="replace"))
        begin, size = end, size + len(parts[-1])
    return b"".join(parts), size + len(quoted) - begin


def _break(quoted: bytes, begin: int, at: int) -> int:
    """Return a place where neither a character nor an escape is cut, at `at` or right before; `begin` is one, too."""
    if at >= len(quoted):
        return len(quoted)
    at = _boundary(quoted, at)
    last = quoted.rfind(b"\\", at - _ESCAPE + 1, at)
    before = quoted[begin : last + 1]
    if (len(before) - len(before.rstrip(b"\\"))) % 2:  # it begins an escape
        size = _ESCAPE if quoted[last + 1 : last + 2] == b"u" else 2
        at = last if last + size > at else at
    if _LOW.match(quoted, at) and _HIGH.match(quoted, at - _ESCAPE):
        at -= _ESCAPE
    return at


def as_text(text: bytes) -> str:
    return text.decode(errors="replace")


def tokens_of(text: bytes) -> int:
    """Return about how many tokens a text has; of one over 64 KiB some pieces stand for all."""
    if len(text) <= _PIECE:
        return estimate_tokens(as_text(text))
    size = _PIECE // _SAMPLES
    places = (number * (len(text) - size) // (_SAMPLES - 1) for number in range(_SAMPLES))
    return sum(estimate_tokens(as_text(text[at : at + size])) for at in places) * len(text) // _PIECE


def is_light(text: bytes) -> bool:
    """Say whether values may be made of a text: that takes no longer than other turns of the loop can bear."""
    return len(text) <= MAX_BYTES and weight(text, _MAX_WEIGHT) <= _MAX_WEIGHT


def _indent(text: bytes) -> bytes | None:
    if text.lstrip()[:1] not in (b"{", b"[") or not is_light(text):
        return None
    if not isinstance(
        json.read_or(json.VALUE, text, None), dict | list
    ):  # it may be JSON with numbers that nobody reads
        return None
    indented = msgspec.json.format(text, indent=1)
    return indented if is_light(indented) else None


def _boundary(text: bytes, at: int) -> int:
    """Return where a character begins, at a place or right before."""
    while at > 0 and text[at] & _CONTINUATION == _CONTINUES:
        at -= 1
    return at


def _starts(text: bytes) -> Starts:
    data, pieces, turns = np.frombuffer(text, np.uint8), list[npt.NDArray[np.int64]](), GivesWay()
    for at in range(0, len(data), _PIECE):
        turns.between()
        pieces.append(np.flatnonzero(data[at : at + _PIECE] == ord("\n")) + at + 1)
    starts = np.concatenate([[0], *pieces]).astype(np.uint32)
    starts = starts[starts < len(text)]
    ends = np.append(starts[1:], len(text))
    long = np.flatnonzero(ends - starts > WRAP)
    if not len(long):
        return starts
    more = [_wraps(text, int(starts[number]), int(ends[number])) for number in long]
    return np.sort(np.concatenate([starts, *(np.array(each, np.uint32) for each in more)])).astype(np.uint32)


def _wraps(text: bytes, start: int, end: int) -> list[int]:
    """Return where a long line is cut, each piece of whole characters."""
    wraps: list[int] = []
    while end - start > WRAP:
        start = _boundary(text, start + WRAP)
        wraps.append(start)
    return wraps


META_KEY: Final = "mcpvisor/result"
"""In `_meta` of a shortened result: where the rest is, and how much there is of it."""
NOTE_TOKENS: Final = 300
MAX_CHARS: Final = 300
"""Of a shape."""
_LEVELS: Final = 4
_NAMES: Final = 12
_NAME_CHARS: Final = 40
_LONG: Final = 200
STRUCTURED: Final = "structuredContent"
LINE: Final = rb"\n"
"""The end of a line as JSON writes it in a string."""

Members = json.Members


class Cut(msgspec.Struct, frozen=True, eq=False):
    """A result that is over its budget, taken apart. `others` are the blocks that stay; `tokens`: how many it has."""

    members: Members
    others: list[Members]
    long_text: LongText
    tokens: int
    budget: int
    outline: str

    @property
    def staying(self) -> int:
        """The bytes of what stays beside the text."""
        blocks = (value for block in self.others for value in block.values())
        members = (value for name, value in self.members.items() if name not in ("content", STRUCTURED))
        return sum(map(len, (*blocks, *members)))

    def result(self, id_: str, kept_s: float) -> tuple[bytes, int]:
        """Return the result as the model gets it, and about how many tokens that spares it.

        The rest is kept under `id_`.
        """
        kept, uri = self.long_text, f"{SCHEME}{id_}"
        structured = STRUCTURED in self.members
        room = max(0, self.budget - NOTE_TOKENS) // (2 if structured else 1)
        last = kept.last_within(1, kept.lines, room)
        head = as_text(kept.between(1, last))
        size = {"uri": uri, "tokens": self.tokens, "bytes": kept.size, "lines": kept.lines, "shown_lines": last}
        note = self._note(uri, last, kept_s)
        blocks = [{"type": "text", "text": head}, *self.others, {"type": "text", "text": note}]
        members: dict[str, Any] = {**self.members, "content": blocks}
        members["_meta"] = {**json.members(self.members.get("_meta")), META_KEY: size}
        if structured:
            members[STRUCTURED] = {"note": note, "head": head}
        return encode(members), max(0, self.tokens - tokens_of(head.encode()))

    def _note(self, uri: str, last: int, kept_s: float) -> str:
        kept = self.long_text
        ways = [f"{uri}?lines={last + 1}-{last + 100}", "?search=WORDS", *(["?path=$.a[0:5]"] if kept.is_json else [])]
        shape_ = f" Its shape: {self.outline}." if self.outline else ""
        lost = (
            f" Of its {kept.size:,} bytes the first {len(kept.text):,} are kept." if kept.size > len(kept.text) else ""
        )
        return (
            f"[This is the beginning (lines 1-{last} of {kept.lines:,}) of a result of about {self.tokens:,} tokens."
            f"{shape_}{'' if kept.is_json else lost} Read on with read_mcp_resource, uri: {', or '.join(ways)};"
            f" it is kept for {_minutes(kept_s)} after it was read last.]"
        )


def cut(body: bytes, budget: int) -> Cut | None:
    """Return a result taken apart; None if it is within its budget, or no result of a tool."""
    if (apart := take_apart(body)) is None or apart.tokens <= budget:
        return None
    kept = apart.long_text()
    outline = shape(kept.value()) if kept.is_json else ""
    return Cut(apart.members, apart.others, kept, apart.tokens, budget, outline)


def left_out(body: bytes, most: int) -> bytes:
    """Return what stands for the result of a call that has no room among those of its request, `most` bytes."""
    text = (
        f"[The tool has run. Its result of {len(body):,} bytes is left out: those of all calls of one request may have "
        f"{most:,} together. If it only reads, call it in a request of its own.]"
    )
    failed = json.read_or(json.MEMBERS, body, {}).get("isError")
    return encode({"content": [{"type": "text", "text": text}], **({} if failed is None else {"isError": failed})})


def size_of(body: bytes) -> int:
    """Return about how many tokens a result has; its bytes for what is none of a tool."""
    return len(body) if (apart := take_apart(body)) is None else apart.tokens


class Apart(msgspec.Struct, frozen=True, eq=False):
    """A result taken apart: its members, its blocks that are no text, and its texts as they stand between quotes.

    `said` is all of these texts, or the beginning; `size`: how many bytes all of them have.
    """

    members: Members
    others: list[Members]
    texts: list[bytes]
    said: bytes
    size: int

    @property
    def structured(self) -> bytes:
        return bytes(self.members.get(STRUCTURED, b""))

    @property
    def tokens(self) -> int:
        whole = self.said if self.size == len(self.said) else LINE.join(self.texts)
        return max(tokens_of(whole), tokens_of(self.structured))

    def long_text(self) -> LongText:
        """Return all that is text, as it is kept."""
        return long_text(_join(self.said, self.structured), self.size - len(self.said))


def take_apart(body: bytes) -> Apart | None:
    """Return a result of a tool taken apart; None for what is none."""
    try:
        members = json.read(json.MEMBERS, body)
        blocks = json.read(json.OBJECTS, members.get("content", b"[]"))
    except json.UnreadableJson:
        return None
    said = [text_of(block) for block in blocks]
    others = [block for block, text in zip(blocks, said, strict=True) if text is None]
    texts = [text for text in said if text is not None]
    return Apart(members, others, texts, *unquote(LINE.join(texts)))


def text_of(block: Members) -> bytes | None:
    """Return the text of a block as it stands between the quotes of a JSON string; None for one that has none."""
    kind = json.text_at(block.get("type"))
    if kind == "text":
        return _between_quotes(block.get("text"))
    if kind == "resource" and "text" in (resource := json.members(block.get("resource"))):
        return b"[%b]\\n%b" % (_between_quotes(resource.get("uri")), _between_quotes(resource["text"]))
    return None


def _between_quotes(text: bytes | None) -> bytes:
    text = bytes(text or b"").strip()
    return text[1:-1] if text[:1] == b'"' else b""


def _join(said: bytes, structured: bytes) -> bytes:
    """Return one text that has everything of both."""
    if not structured or not said:
        return said or structured
    if is_light(said) and is_light(structured):
        value, spoken = json.read_or(json.VALUE, structured, None), json.read_or(json.VALUE, said, None)
        if spoken is not None and spoken == value:
            return structured
        alone = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else None
        if alone is not None and alone in (as_text(said), spoken):  # wrapped, as structured content had to be an object
            return said
        return encode({"content": as_text(said) if spoken is None else spoken, STRUCTURED: msgspec.Raw(structured)})
    return said + b"\n" + structured


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} s"


def shape(value: Any) -> str:
    """Return for example `{"items": [1200 x {"id": number, "name": string}], "total": number}`; 300 characters at most.

    Of an array the first element stands for all.
    """
    told = _shape(value, _LEVELS)
    return told if len(told) <= MAX_CHARS else f"{told[: MAX_CHARS - 3]}..."


def _shape(value: Any, levels: int) -> str:
    match value:
        case dict():
            return _members(value, levels) if levels and value else "{...}" if value else "{}"
        case list():
            return f"[{len(value)} x {_shape(value[0], levels - 1) if levels else '...'}]" if value else "[]"
        case str():
            return f"string of {len(value)}" if len(value) > _LONG else "string"
        case bool():
            return "boolean"
        case None:
            return "null"
    return "number"


def _members(value: dict[str, Any], levels: int) -> str:
    told = [f"{_name(name)}: {_shape(item, levels - 1)}" for name, item in islice(value.items(), _NAMES)]
    more = len(value) - len(told)
    return f"{{{', '.join([*told, *([f'{more} more'] if more else [])])}}}"


def _name(name: str) -> str:
    return encode(escape(name[:_NAME_CHARS])).decode()
