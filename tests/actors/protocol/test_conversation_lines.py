"""One message to a server is one line, however the client wrote what is in it."""

from __future__ import annotations

import json

import msgspec
import pytest

from actors.protocol.conversation import Conversation
from actors.protocol.era import Identity
from actors.protocol.listing import ListLimits


@pytest.mark.parametrize("newline", ["\n", "\r", "\r\n"])
def test_arguments_over_many_lines_are_sent_as_one(newline: str) -> None:
    talk = Conversation("s1", Identity(version="1"), "legacy", ListLimits())
    arguments = newline.join(["{", ' "text": "a\\nb",', "", ' "list": [', "1", "]", "}"])
    talk.call(1, "tools/call", b'"name":"echo","arguments":' + arguments.encode(), b"")
    sent = talk.take_output()
    assert sent.count(b"\n") == 1
    assert b"\r" not in sent
    assert json.loads(sent)["params"]["arguments"] == {"text": "a\nb", "list": [1]}


def test_a_message_between_line_breaks_is_not_smuggled_to_the_server() -> None:
    talk = Conversation("s1", Identity(version="1"), "legacy", ListLimits())
    smuggled = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}'
    talk.call(1, "tools/call", b'"arguments":{"a":\n' + smuggled + b"\n}", b'"b":\n' + smuggled + b"\n")
    assert len(talk.take_output().splitlines()) == 1


def test_a_line_break_inside_a_string_is_no_json_to_begin_with() -> None:
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(b'{"a": "x\ny"}', type=dict[str, msgspec.Raw])
