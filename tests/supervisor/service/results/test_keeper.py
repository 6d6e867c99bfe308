"""Who may read what is kept, for how long, and what happens where there is no room: nothing is lost."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from actors.protocol.wire.jsonrpc import RemoteError
from supervisor.config import ServerConfig
from supervisor.config.values import MIB
from supervisor.host.workbench import Workbench
from supervisor.service.client import Client
from supervisor.service.fitting.relay import WHOLE
from supervisor.service.results.cutting import META_KEY
from supervisor.service.results.keeper import KeptResults
from tests.fakes.deployments import deployment
from tests.fakes.exchanges import exchange

LINES = "".join(f"line {number} of a long text\n" for number in range(5000))
ME = Client(name="me", session="1")
NO_META = msgspec.Raw(b"")
KEPT_S = 100.0


def body_of(text: str) -> bytes:
    return json.dumps({"content": [{"type": "text", "text": text}]}).encode()


BODY = body_of(LINES)


def results(budget: Any = 1000, **settings: Any) -> KeptResults:
    entry = ServerConfig(name="s", command="x", result_token_budget=budget)
    return KeptResults(deployment(entry, result_kept_s=KEPT_S, **settings), Workbench())


async def shortened(kept: KeptResults, client: Client = ME, body: bytes = BODY, meta: msgspec.Raw = NO_META) -> str:
    """The address of what is kept; empty if the result passed as it is."""
    made, _ = await kept.shorten(exchange(client, "tools/call"), "s", "t", meta, body)
    if made == body:
        return ""
    uri: str = json.loads(made)["_meta"][META_KEY]["uri"]
    return uri


async def read(kept: KeptResults, uri: str, client: Client = ME) -> str:
    return (await kept.read(exchange(client, "resources/read"), uri)).text


def used_bytes(kept: KeptResults) -> int:
    return sum(each.long_text.memory for _, each in kept._kept.values())


@pytest.mark.case("I22")
async def test_the_rest_is_read_by_whoever_made_the_call_and_by_nobody_else() -> None:
    kept = results()
    uri = await shortened(kept)
    assert await read(kept, f"{uri}?lines=4000") == "line 3999 of a long text\n"
    others = [Client(name="me", session="2"), Client(name="me"), Client(name="you", session=None, era="modern")]
    for other in others:
        with pytest.raises(RemoteError, match="call the tool again") as caught:
            await read(kept, uri, other)
        assert caught.value.error.code == (-32602 if other.era == "modern" else -32002)


@pytest.mark.parametrize(
    ("budget", "meta"),
    [
        (None, b""),
        (1_000_000, b""),
        ({"other": 1000}, b""),
        (1000, json.dumps({WHOLE: True}).encode()),
        ({"t": 1_000_000, "*": 1000}, b""),
    ],
)
async def test_without_a_budget_and_for_programs_a_result_is_the_same_bytes(budget: Any, meta: bytes) -> None:
    assert await shortened(results(budget), meta=msgspec.Raw(meta)) == ""


@pytest.mark.parametrize(
    ("budget", "daemons", "cut"),
    [({"t*": 1000}, None, True), ({"u": 1000}, 1000, True), (None, 1000, True), (1_000_000, 1000, False)],
)
async def test_the_budget_of_a_tool_is_that_of_its_entry_or_of_the_daemon(
    budget: Any, daemons: int | None, cut: bool
) -> None:
    assert bool(await shortened(results(budget, result_token_budget=daemons))) is cut


@pytest.mark.parametrize("meta", [b"null", b"[]", b"{", json.dumps({WHOLE: 1}).encode(), b'{"x":true}'])
async def test_any_other_meta_says_nothing(meta: bytes) -> None:
    assert await shortened(results(), meta=msgspec.Raw(meta))


async def test_it_is_kept_for_its_time_after_it_was_read_last(autojump_clock: MockClock) -> None:
    kept = results()
    first, second = await shortened(kept), await shortened(kept)
    await trio.sleep(KEPT_S - 1)
    assert await read(kept, first)
    await trio.sleep(2)
    assert await read(kept, first)
    with pytest.raises(RemoteError):
        await read(kept, second)
    await trio.sleep(KEPT_S + 1)
    with pytest.raises(RemoteError):
        await read(kept, first)


async def test_what_nobody_reads_is_forgotten_without_anybody_asking(autojump_clock: MockClock) -> None:
    kept = results()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(kept.run)
        await shortened(kept)
        assert used_bytes(kept) > len(LINES)
        await trio.sleep(KEPT_S * 1.5)
        assert used_bytes(kept) == 0
        nursery.cancel_scope.cancel()


async def test_one_client_makes_room_by_its_oldest_and_never_by_those_of_others() -> None:
    kept = results(max_kept_result_bytes=MIB)
    other = Client(name="other", session="9")
    theirs = await shortened(kept, other)
    mine = [await shortened(kept) for _ in range(8)]
    assert all(mine)
    assert await read(kept, theirs, other)
    assert await read(kept, mine[-1])
    with pytest.raises(RemoteError):
        await read(kept, mine[0])
    assert 0 < used_bytes(kept) <= MIB


async def test_what_finds_no_room_at_all_passes_whole() -> None:
    kept = results(max_kept_result_bytes=MIB)
    assert await shortened(kept, body=body_of("word " * 300_000)) == ""
    assert await shortened(kept)
