"""What a line is, found out once: a message, a batch of them, or why it is neither."""

from __future__ import annotations

from actors.protocol.wire.decoded_line import decode_line, text_of
from actors.protocol.wire.fragment import Fragment

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
    found = decode_line(b'{"jsonrpc":"2.0","id":"s1-1","result":NaN}')
    assert found.fragment == Fragment(b'"s1-1"', result=True)
