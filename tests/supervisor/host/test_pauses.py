"""Short pauses: what is set for the whole process, and put back here."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.offer import Offer, Tool, decode_offer, encode_offer
from actors.catalogue.snapshot import Catalogue
from actors.kit import Latest
from actors.protocol.wire import json
from actors.protocol.wire.json import quoted
from actors.search.document import Document
from actors.search.index import Index
from actors.search.segment import analyse
from supervisor.host.pauses import (
    LEAST_GROWN,
    LONG_S,
    OFTEN,
    keep_catalogue,
    keep_many,
    short_searches,
)
from tests.fakes.garbage import no_search


@pytest.fixture
def restored() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)
    gc.freeze()  # again: all that is loaded would be searched with each test that follows


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(("took_s", "kept"), [(LONG_S * 0.9, False), (LONG_S * 1.1, True)])
def test_what_a_full_search_took_long_for_is_left_out_of_the_next(took_s: float, kept: bool) -> None:
    gc.collect()
    gc.unfreeze()
    before, watching = gc.get_threshold(), list(gc.callbacks)
    moments = [0.0, took_s]
    due: list[Callable[[], None]] = []
    with short_searches(due.append, lambda: moments.pop(0)):
        for _ in range(OFTEN):
            gc.collect(0)
            assert not due
            gc.collect(1)
        due.pop()()
        assert (gc.get_freeze_count() > 0, moments, due) == (kept, [], [])
    assert (gc.get_threshold(), gc.callbacks) == (before, watching)


@pytest.mark.usefixtures("restored")
def test_searches_stay_as_short_however_much_lives() -> None:
    due: list[Callable[[], None]] = []
    walked: list[int] = []

    def search() -> None:
        walked.append(len(gc.get_objects()))
        due.pop()()

    gc.collect()
    moments = count()  # so that each takes long
    lives: list[Any] = []
    with short_searches(due.append, lambda: float(next(moments))):
        for _ in range(100_000):
            lives.append([lives])
            while due:
                search()
    assert len(walked) >= 4
    assert max(walked[1:]) < 40_000


@pytest.mark.usefixtures("restored")
def test_of_what_is_young_garbage_is_freed_and_the_rest_left_out_of_the_search() -> None:
    class Circle:
        def __init__(self) -> None:
            self.itself = self

    with no_search() as alive:
        gc.unfreeze()
        kept = Circle()
        Circle()
        keep_many()
        assert (alive(Circle), gc.get_freeze_count() > 0) == (0, True), "what is left out is not even found"
        gc.unfreeze()
        assert alive(Circle) == 1
        del kept


def _catalogue(size: int, *, indexed: bool = True) -> Catalogue:
    documents = [Document(key=f"s:{n}", kind="tool", server="s", name=f"t{n}") for n in range(size)]
    return Catalogue(index=Index.empty().rebuild([analyse("s", documents)]), indexed=indexed)


async def test_a_catalogue_is_left_out_when_it_is_indexed_and_whenever_it_has_doubled(
    autojump_clock: MockClock,
) -> None:
    latest: Latest[Catalogue] = Latest(_catalogue(0, indexed=False))
    kept: list[int] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_catalogue, latest, lambda: kept.append(len(latest.value.index)))
        for size in (0, 0, 5, LEAST_GROWN - 1, LEAST_GROWN, LEAST_GROWN + 1, 2 * LEAST_GROWN, 5):
            await wait_all_tasks_blocked()
            latest.set(_catalogue(size))
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert kept == [0, 0, LEAST_GROWN, 2 * LEAST_GROWN]


def test_a_large_offer_is_kept_compressed_and_comes_back() -> None:
    offer = Offer(tools=tuple(Tool(name=f"t{number}", described=quoted("words " * 100)) for number in range(3000)))
    saved = encode_offer(offer)
    assert len(saved) < 200_000
    assert decode_offer(saved) == offer


@pytest.mark.parametrize("change", [lambda saved: saved[:-10], lambda saved: saved[:50] + b"?" + saved[51:]])
def test_a_large_offer_that_was_damaged_is_no_offer(change: Callable[[bytes], bytes]) -> None:
    offer = Offer(tools=tuple(Tool(name=f"t{number}", described=quoted("words " * 100)) for number in range(3000)))
    with pytest.raises(json.UnreadableJson):
        decode_offer(change(encode_offer(offer)))


@pytest.mark.parametrize(
    "data", [b"", b"x", b"\xff", b"null", b"[" * 100_000, b'{"tools":7}', b'{"read_at":' + b"1" * 5000 + b"}", 7, "{"]
)
def test_what_is_no_saved_offer_is_refused_in_one_way(data: bytes) -> None:
    with pytest.raises(json.UnreadableJson):
        decode_offer(data)
