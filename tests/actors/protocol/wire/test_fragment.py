"""What can be read of an answer that cannot be decoded: enough to fail its call at once, never another one."""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from actors.protocol.wire.fragment import Fragment, decode_line, read_fragment, text_of
from actors.protocol.wire.framing import HEAD_BYTES, LineSplitter, Oversized
from actors.protocol.wire.jsonrpc import canonical

OURS = b"71"
RESULT, ERROR = Fragment(OURS, result=True), Fragment(OURS, result=False)
BIG = "x" * (2 * HEAD_BYTES)

QUOTES = ['"id":71}', ',"id":71}', '{"id":71,"result":{}}', "71", '\\"id\\":71']
names = st.sampled_from(["id", "result", "error", "method", "params", "jsonrpc", "x", *QUOTES])
texts = st.sampled_from(["71", "2.0", "id", "", "\\", '"', *QUOTES]) | st.text(max_size=5)
values = st.recursive(
    st.none() | st.integers() | texts | st.just(BIG),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=8,
)


def cut(line: bytes, limit: int = 4096) -> Oversized:
    """The line as it comes out of a splitter whose limit it is over."""
    [oversized] = LineSplitter(limit).feed(line + b"\n")
    assert isinstance(oversized, Oversized)
    return oversized


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":71,"result":{"a":NaN}}', RESULT),
        (b'{"result":{"a":[-Infinity,1e999]},"jsonrpc":"2.0","id":71}', RESULT),
        (b' { "id" : 71 , "result" : "\xff" } ', RESULT),
        (b'{"id":71,"error":{"code":NaN}}', ERROR),
        (b'{"id":71,"error":nonsense,"result":{}}', ERROR),
        (b'{"id":71,"result":{"a":[', RESULT),
        (b'{"id":71,"result":', RESULT),
        (b'{"id":71,"result":{}}{"id":72,"result":{}}', RESULT),
        (b'{"id":71,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}", RESULT),
        (b'{"result":' + b"[" * 100_000 + b"]" * 100_000 + b',"jsonrpc":"2.0","id":71}', RESULT),
        (b'{"result":"' + BIG.encode() + b'","id":71,"jsonrpc":"2.0" } ', RESULT),
    ],
)
def test_the_id_of_a_malformed_answer_is_read(line: bytes, expected: Fragment) -> None:
    assert read_fragment(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"nonsense",
        b'"id":71,"result":{}}',
        b'[{"id":71,"result":NaN}]',
        b'{"id":71}',
        b'{"id":"one","result":NaN}',
        b'{"id":null,"result":NaN}',
        b'{"id":71,"method":"ping","params":NaN}',
        b'{"id":71,"result":NaN,"method":"ping"}',
        b'{"x":{"id":71,"result":NaN}}',
        b'{"x":"\\","id":71,"result":NaN',
        b'{"x":[}],"id":71,"result":NaN}',
        b'{"x":1 2,"id":71,"result":NaN}',
        b'{"id":71,"id":72,"result":NaN}',
        b'{"id":71,"\\u006dethod":"ping","result":NaN}',
        b'{"result":{"text":"half of it, quoting \\"id\\":71}',
        b'{"params":{"text":"' + BIG.encode() + b'"},"id":71}',
        b'{"result":{"text":"' + BIG.encode() + b'"},"method":"x","id":71}',
        b'{"result":{"text":"' + BIG.encode() + b'\\",\\"id\\":71}',
    ],
)
def test_what_is_not_certainly_an_answer_to_somebody_is_none(line: bytes) -> None:
    assert read_fragment(line) is None


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"jsonrpc": "2.0", "id": 71, "result": {"text": BIG}}, RESULT),
        ({"id": 71, "result": {"text": BIG}, "jsonrpc": "2.0"}, RESULT),
        ({"result": {"text": BIG}, "jsonrpc": "2.0", "id": 71}, RESULT),
        ({"error": {"code": 1, "message": BIG}, "id": 71}, ERROR),
        ({"result": BIG, "id": 71}, RESULT),
        ({"jsonrpc": "2.0", "method": "notifications/message", "params": {"id": 71, "result": BIG}}, None),
        ({"params": {"text": BIG, "id": 71}, "method": "x"}, None),
        ({"result": {"text": BIG}, "id": 71, "x": BIG}, None),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (" , ", " : ")])
def test_the_id_of_an_answer_over_the_limit_is_read_wherever_servers_write_it(
    message: Any, expected: Fragment | None, separators: tuple[str, str]
) -> None:
    assert read_fragment(cut(json.dumps(message, separators=separators).encode())) == expected


@given(st.dictionaries(names, values, max_size=6), st.booleans())
def test_an_id_is_only_ever_the_outermost_one_of_an_answer(message: dict[str, Any], short: bool) -> None:
    line = json.dumps(message, separators=(",", ":"), ensure_ascii=short).encode()
    assume(len(line) > 100)
    for found in (read_fragment(line), read_fragment(cut(line, max(80, len(line) // 8)))):
        if found is not None:
            assert found.id == canonical(msgspec.json.encode(message["id"]))
            assert "result" in message or "error" in message
            assert "method" not in message or len(line) > HEAD_BYTES
            assert not found.result or "error" not in message or len(line) > HEAD_BYTES


@given(st.dictionaries(names, values, max_size=6), st.integers(0, 2000), st.binary(max_size=4))
def test_a_broken_place_never_makes_a_nested_id_the_outermost_one(
    message: dict[str, Any], place: int, put: bytes
) -> None:
    line = json.dumps({"params": message}, separators=(",", ":")).encode()[:HEAD_BYTES]
    place = min(place, len(line))
    assume(not any(mark in put for mark in b'{}[]",\\'))
    assert read_fragment(line[:place] + put + line[place:]) is None


@pytest.mark.parametrize("part", [b"[", b'{"a":', b'"', b'\\"', b'"a",', b"1,", b" ", b"\\", b',"id":"'])
def test_the_worst_text_costs_milliseconds(part: bytes) -> None:
    line = b'{"result":' + part * (4_000_000 // len(part))
    start = time.process_time()
    for _ in range(10):
        read_fragment(line)
    # 4 MB read to the end would take a second each; some 5 ms are usual, and this is generous.
    assert time.process_time() - start < 1.0


PING = b'{"jsonrpc":"2.0","method":"ping"}'


def test_a_message_is_opened_with_its_text() -> None:
    found = decode_line(PING)
    assert found.envelope is not None
    assert (found.envelope.method, found.members, found.trouble, text_of(found)) == ("ping", (), "", PING)


def test_the_members_of_a_batch_are_opened_each_for_itself() -> None:
    found = decode_line(b" [" + PING + b",7]")
    assert [member.envelope is not None for member in found.members] == [True, False]
    assert "no JSON-RPC" in found.members[1].trouble


def test_what_only_begins_like_a_batch_has_the_trouble_of_a_message() -> None:
    for line in (b"[nonsense", b"[" + b",".join([PING] * 10_000) + b"]"):
        found = decode_line(line)
        assert (found.envelope, found.members) == (None, ())
        assert "no JSON-RPC" in found.trouble


def test_of_a_broken_answer_its_id_is_read() -> None:
    found = decode_line(b'{"jsonrpc":"2.0","id":71,"result":NaN}')
    assert found.fragment == Fragment(b"71", result=True)
