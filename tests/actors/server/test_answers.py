"""Answers that cannot be passed on: their call fails at once and says why, the server and its other calls go on."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import CallTooLarge, ProtocolViolation, SupervisorError
from actors.kit import Reply
from actors.messages import Result, ServerChanged
from actors.protocol.wire.jsonrpc import RemoteError
from tests.actors.server.rig import Rig, content, running_server
from tests.fakes.mcp_server import FakeServer
from tests.fakes.memory import MemoryTransport

LIMIT = 20_000
BIG = b"x" * (2 * LIMIT)
BATCHING = partial(FakeServer, revision="2025-03-26")
"""A server that agrees on the only revision with batches."""


async def begun(rig: Rig, deadline_s: float = 60.0) -> Reply[Result]:
    """Make a call that the test answers."""
    await rig.wake()
    call = rig.submit("hang", deadline_s)
    await wait_all_tasks_blocked()
    return call


async def failed(rig: Rig, answer: bytes) -> SupervisorError:
    """Let a call be answered with these bytes, ID being its id; return its error, which must come at once."""
    call, before = await begun(rig), trio.current_time()
    await rig.fake.write(answer.replace(b"ID", id_of(rig)) + b"\n")
    with pytest.raises(SupervisorError) as caught:
        await call.wait()
    assert trio.current_time() - before < 1
    return caught.value


async def answered(rig: Rig, answer: bytes) -> Any:
    """Let a call be answered with these bytes, ID being its id; return its structured content."""
    call = await begun(rig)
    await rig.fake.write(answer.replace(b"ID", id_of(rig)) + b"\n")
    return await content(call)


def id_of(rig: Rig) -> bytes:
    """The id of the newest call, as JSON."""
    id_: int = [message["id"] for message in rig.fake.messages if message["method"] == "tools/call"][-1]
    return b"%d" % id_


async def lives(rig: Rig) -> None:
    """The same process answers the next call."""
    assert await rig.call(a=1) == {"a": 1}
    assert rig.fake.starts == 1
    assert (await rig.status()).in_flight == 0


@pytest.mark.case("S03", "S10", "S12", "S14", "S19", "S20")
@pytest.mark.parametrize(
    ("answer", "why", "outcome"),
    [
        (b'{"jsonrpc":"2.0","id":ID,"result":{"a":"\xff\xfe"}}', "not UTF-8", "completed"),
        (b'{"jsonrpc":"2.0","id":ID,"result":{"a":NaN}}', "invalid character", "completed"),
        (b'{"result":{"a":-Infinity},"jsonrpc":"2.0","id":ID}', "invalid character", "completed"),
        (b'{"jsonrpc":"2.0","id":ID,"result":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}}", "too deeply", "completed"),
        (
            b'{"jsonrpc":"2.0","id":ID,"result":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
            "too deeply",
            "completed",
        ),
        (b'{"jsonrpc":"1.0","id":ID,"result":{}}', '"jsonrpc" is not "2.0"', "completed"),
        (b'{"id":ID,"result":{}}', '"jsonrpc" is not "2.0"', "completed"),
        (b'{"jsonrpc":"2.0","id":ID,"result":{}}{"jsonrpc":"2.0"}', "trailing characters", "completed"),
        (b'{"jsonrpc":"2.0","id":ID,"result":{"a":', "truncated", "completed"),
        (b'[{"jsonrpc":"2.0","id":ID,"result":{}}]', "a batch", "completed"),
        (b'{"jsonrpc":"2.0","id":ID,"result":[1]}', "a result that is no object", "completed"),
        (b'{"jsonrpc":"2.0","id":ID,"result":null}', "a result that is no object", "completed"),
        (b'{"jsonrpc":"2.0","id":ID,"result":"ok"}', "a result that is no object", "completed"),
        (b'{"jsonrpc":"2.0","id":ID,"error":{"code":"E_FAIL","message":12}}', "code or message: E_FAIL", "unknown"),
        (b'{"jsonrpc":"2.0","id":ID,"result":{},"error":{}}', "both a result and an error", "unknown"),
        (b'{"jsonrpc":"2.0","id":ID}', "neither a result nor an error", "unknown"),
        (b'{"jsonrpc":"2.0","id":ID,"error":{"message":"no disk"}}', "code or message: no disk", "unknown"),
        (b'{"jsonrpc":"2.0","id":ID,"error":{"code":NaN}}', "invalid character", "unknown"),
    ],
)
async def test_a_malformed_answer_fails_its_call_at_once_and_says_what_is_wrong(
    autojump_clock: MockClock, answer: bytes, why: str, outcome: str
) -> None:
    async with running_server() as rig:
        error = await failed(rig, answer)
        assert type(error) is ProtocolViolation
        assert "server 's' answered with " in error.message
        assert why in error.message
        assert error.outcome == outcome
        await lives(rig)


@pytest.mark.case("S06")
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (b'{"jsonrpc":"2.0","id":ID,"result":{"a":"' + BIG + b'"}}', "completed"),
        (b'{"result":{"a":"' + BIG + b'"},"jsonrpc":"2.0","id":ID}', "completed"),
        (b'{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"' + BIG + b'"}}', "unknown"),
    ],
)
async def test_an_answer_over_the_limit_fails_its_call_as_too_large(
    autojump_clock: MockClock, answer: bytes, outcome: str
) -> None:
    fake = FakeServer()
    async with running_server(fake, transport=MemoryTransport(fake.serve, max_line_bytes=LIMIT)) as rig:
        error = await failed(rig, answer)
        assert type(error) is CallTooLarge
        assert "over its limit of 20000 bytes (max_line_bytes)" in error.message
        assert error.outcome == outcome
        assert error.details is not None
        assert error.details["limit_bytes"] == LIMIT < error.details["bytes"]
        await lives(rig)


@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","id":ID,"result":{"a":[' + b"[]," * 1_000_000 + b"1]}}",
        b'{"result":{"a":[' + b"[]," * 1_000_000 + b'1]},"jsonrpc":"2.0","id":ID}',
    ],
)
async def test_an_answer_of_a_million_lists_fails_its_call_as_too_large(
    autojump_clock: MockClock, answer: bytes
) -> None:
    async with running_server() as rig:
        error = await failed(rig, answer)
        assert type(error) is CallTooLarge
        assert "too many values, brackets or escapes" in error.message
        assert error.outcome == "completed"
        assert error.details == {"limit_weight": 17 * 1024 * 1024}
        await lives(rig)


@pytest.mark.case("S20")
async def test_a_large_answer_in_a_batch_arrives_where_the_revision_has_batches(autojump_clock: MockClock) -> None:
    text = b"x" * 300_000
    message = b'[{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":{"a":"' + text + b'"}}}]'
    async with running_server(BATCHING()) as rig:
        assert await answered(rig, message) == {"a": text.decode()}
    async with running_server() as rig:
        error = await failed(rig, message)
        assert type(error) is ProtocolViolation
        assert "a batch, which this version of the protocol does not have" in error.message


@pytest.mark.case("S14")
@pytest.mark.parametrize("wrong", [b"NaN", b'"\xff"', b'"x'])
async def test_a_large_malformed_answer_fails_its_call_at_once(autojump_clock: MockClock, wrong: bytes) -> None:
    async with running_server() as rig:
        answer = b'{"jsonrpc":"2.0","id":ID,"result":{"text":"' + b"x" * 300_000 + b'","a":' + wrong + b"}}"
        assert type(await failed(rig, answer)) is ProtocolViolation
        await lives(rig)


@pytest.mark.case("S05")
async def test_a_server_whose_line_never_ends_is_replaced(autojump_clock: MockClock) -> None:
    fake = FakeServer()
    async with running_server(fake, transport=MemoryTransport(fake.serve, max_line_bytes=LIMIT)) as rig:
        error = await failed(rig, b'{"jsonrpc":"2.0","id":ID,"result":{"a":"' + 20 * BIG)
        assert type(error) is CallTooLarge
        assert error.outcome == "completed"
        assert await rig.call(a=1) == {"a": 1}
        assert rig.fake.starts == 2
        assert "does not end" in " ".join(fact.reason for fact in rig.of(ServerChanged))


async def test_a_log_message_over_the_limit_costs_no_call(autojump_clock: MockClock) -> None:
    fake = FakeServer()
    async with running_server(fake, transport=MemoryTransport(fake.serve, max_line_bytes=LIMIT)) as rig:
        await rig.wake()
        await rig.fake.write(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"' + BIG + b'"}}\n')
        await rig.fake.write(BIG + b"\n")
        await lives(rig)
        assert (await rig.status()).noise == 2


async def test_the_members_of_a_batch_are_messages_where_the_revision_has_batches(autojump_clock: MockClock) -> None:
    async with running_server(BATCHING()) as rig:
        answer = b'{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":5}}'
        assert await answered(rig, b'[5, {"jsonrpc":"2.0","method":"notifications/x"},' + answer + b"]") == 5
        assert (await rig.status()).noise == 1


@pytest.mark.case("S20")
@pytest.mark.parametrize("size", [0, 300_000])  # the larger one is decoded elsewhere
async def test_an_empty_batch_is_no_message(autojump_clock: MockClock, size: int) -> None:
    async with running_server(BATCHING()) as rig:
        await rig.wake()
        await rig.fake.write(b"[" + b" " * size + b"]\n")
        await lives(rig)
        assert (await rig.status()).noise == 1


@pytest.mark.case("S15")
async def test_half_an_emoji_in_a_result_costs_a_character_not_the_call(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        answer = rb'{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":"cut \ud83d"}}'
        assert await answered(rig, answer) == "cut \ufffd"


@pytest.mark.case("S27")
@pytest.mark.parametrize("code", [-32050, -32020, -32000, -1, 0, 1, 2**53 - 1])
async def test_the_error_of_a_server_arrives_with_its_code_message_and_data(
    autojump_clock: MockClock, code: int
) -> None:
    error = {"code": code, "message": "no", "data": {"a": [1]}}
    async with running_server(FakeServer(errors_at={"tools/call": error})) as rig:
        with pytest.raises(RemoteError) as caught:
            await rig.call()
        found = caught.value.error
        assert (found.code, found.message, bytes(found.data)) == (code, "no", b'{"a": [1]}')


async def test_what_a_server_says_in_a_malformed_error_keeps_its_secrets(autojump_clock: MockClock) -> None:
    async with running_server(hide=lambda text: text.replace("sk-1", "***")) as rig:
        error = await failed(rig, b'{"jsonrpc":"2.0","id":ID,"error":{"code":"E","message":"bad key sk-1"}}')
        assert "E bad key ***" in error.message
