"""Who may begin: so many in each pass of the loop, and clients in turns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from actors.kit import Turnstile
from actors.kit.fairness.share import pass_counter


@asynccontextmanager
async def open_turnstile(per_pass: int = 2) -> AsyncIterator[tuple[Turnstile, trio.Nursery]]:
    turnstile = Turnstile(per_pass)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turnstile.run)
        await trio.testing.wait_all_tasks_blocked()
        yield turnstile, nursery
        nursery.cancel_scope.cancel()


class Record:
    """Who began, and in which pass."""

    def __init__(self, turnstile: Turnstile) -> None:
        self._turnstile = turnstile
        self.began: list[tuple[str, int]] = []

    async def request(self, who: str) -> None:
        await self._turnstile.enter((who, None))
        self.began.append((who, pass_counter()()))


async def arrive(counts: dict[str, int], per_pass: int) -> list[tuple[str, int]]:
    """Let so many requests of each client arrive at once; return who began when."""
    async with open_turnstile(per_pass) as (turnstile, _):
        record = Record(turnstile)
        async with trio.open_nursery() as requests:
            for who, count in counts.items():
                for _ in range(count):
                    requests.start_soon(record.request, who)
        return record.began


async def test_who_finds_nobody_begins_without_a_checkpoint() -> None:
    async with open_turnstile() as (turnstile, _):
        with trio.testing.assert_no_checkpoints():
            await turnstile.enter(("a", None))
            await turnstile.enter(("b", None))


async def test_one_request_of_a_client_does_not_wait_for_all_of_another_one() -> None:
    async with open_turnstile() as (turnstile, nursery):
        record = Record(turnstile)
        for _ in range(400):
            nursery.start_soon(record.request, "flood")
        await trio.lowlevel.checkpoint()
        await record.request("calm")
        assert len(record.began) < 12


@given(
    counts=st.dictionaries(st.sampled_from("abcd"), st.integers(1, 40), min_size=1),
    per_pass=st.integers(1, 5),
)
def test_everybody_begins_and_no_more_than_so_many_in_a_pass(counts: dict[str, int], per_pass: int) -> None:
    began = trio.run(arrive, counts, per_pass)
    names = [who for who, _ in began]
    assert {who: names.count(who) for who in counts} == counts
    # Tasks that were let begin in one pass run in the next one, in any order.
    passes = [number for _, number in began]
    assert max(passes.count(number) for number in passes) <= 2 * per_pass


async def test_names_that_a_client_makes_up_gain_it_nothing() -> None:
    async with open_turnstile() as (turnstile, nursery):
        began: list[str] = []

        async def request(person: str, name: str) -> None:
            await turnstile.enter((person, name))
            began.append(person)

        for number in range(400):
            nursery.start_soon(request, "flood", str(number))
        await trio.lowlevel.checkpoint()
        await request("calm", "")
        assert len(began) < 12


async def test_who_goes_away_leaves_nothing_behind_and_nobody_out() -> None:
    async with open_turnstile(1) as (turnstile, nursery):
        record = Record(turnstile)
        with trio.CancelScope() as leaving:
            async with trio.open_nursery() as requests:
                for _ in range(20):
                    requests.start_soon(record.request, "a")
                nursery.start_soon(record.request, "b")
                await trio.lowlevel.checkpoint()
                leaving.cancel()
        while ("b" not in dict(record.began)) or turnstile._queues:
            await trio.lowlevel.checkpoint()


async def test_nobody_waits_for_one_that_does_not_run() -> None:
    turnstile = Turnstile(1)
    for _ in range(10):
        await turnstile.enter(("a", None))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turnstile.run)
        await trio.lowlevel.checkpoint()
        async with trio.open_nursery() as requests:
            for _ in range(10):
                requests.start_soon(turnstile.enter, ("a", None))
            await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
