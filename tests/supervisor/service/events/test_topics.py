"""Topics: followed once for all who hold them, a while longer, and again from where they were left."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.codes import EVENT_NOT_FOUND, FORBIDDEN
from actors.errors import CallTimedOut, InvalidArguments, ServerError
from actors.principal import LOCAL
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from supervisor.service.events import topics as topics_module
from supervisor.service.events.limits import LINGER_S, MAX_ARGUMENTS_BYTES, MAX_EVENT_BYTES, TooManyEvents
from supervisor.service.events.sources import Terminated, canonical
from supervisor.service.events.topics import Topic, Topics
from tests.fakes.event_source import NAME, FakeSource, at, occurrence, topics_of

NONE = msgspec.Raw(b"{}")
GONE = ErrorObject(EVENT_NOT_FOUND, "NotFound")


def ids(topic: Topic, number: int = -1) -> list[str]:
    return [each.event_id for each in topic.after(number, 100).events]


async def test_who_wants_the_same_shares_it_whatever_its_arguments_are_written_like() -> None:
    source = FakeSource()
    async with topics_of(source) as topics:
        one = topics.hold(at("ann"), NAME, msgspec.Raw(b'{"b": [1.0, {"y":2,"x":1}], "a":1}'))
        other = topics.hold(at("bob"), NAME, msgspec.Raw(b'{"a":1,"b":[1.0,{"x":1,"y":2}]}'))
        third = topics.hold(at("bob"), NAME, msgspec.Raw(b'{"a":1.0}'))
        async with one as mine, other as theirs, third as another:
            assert mine is theirs
            assert another is not mine
            assert (mine.name, mine.launch, mine.arguments) == (NAME, "desk", b'{"a":1,"b":[1.0,{"x":1,"y":2}]}')
            assert source.following == 2


@pytest.mark.parametrize("cursor", ["", "x", "a.b.c", "1.2.3.4", "..-1", "x" * 5000])
async def test_a_cursor_of_which_nothing_is_known_is_none(cursor: str) -> None:
    async with topics_of(FakeSource()) as topics, topics.hold(at(), NAME, NONE) as topic:
        assert topic.position(cursor) is None
        life, id_, number = topic.cursor(7).split(".")
        assert topic.position(f"{life}.{id_}.{'9' * 5000}") == topic.head
        assert topic.position(f"{life}.{id_[:-1]}.{number}") is None
        assert topic.position(f"{life}.{id_}.²") is None
        assert topic.after(-1, 10).truncated


async def test_it_is_followed_a_while_after_the_last_and_then_from_where_it_was_left(autojump_clock: MockClock) -> None:
    source = FakeSource()
    async with topics_of(source) as topics:
        async with topics.hold(at(), NAME, NONE) as topic:
            await source.tell("a")
        await trio.sleep(LINGER_S - 1)
        async with topics.hold(at(), NAME, NONE) as again:
            assert again is topic
        await trio.sleep(LINGER_S - 1)
        assert source.following == 1
        await trio.sleep(2)
        assert source.following == 0
        assert topic.closed
        async with topics.hold(at(), NAME, NONE) as later:
            assert (later is topic, source.followed[-1].cursor) == (False, "a")
            number = topic.position(topic.cursor(topic.head))
            await source.tell("b")
            reading = later.after(number or 0, 10)
            assert ([each.event_id for each in reading.events], reading.truncated) == (["b"], False)


async def test_a_topic_that_is_polled_rarely_is_followed_until_the_next_poll(autojump_clock: MockClock) -> None:
    source = FakeSource()
    async with topics_of(source) as topics:
        async with topics.hold(at(), NAME, NONE):
            source.told.asked_every(100_000)
        await trio.sleep(299)
        assert source.following == 1
        await trio.sleep(2)
        assert source.following == 0


async def test_a_source_that_cannot_go_on_has_a_gap_each_time_it_begins() -> None:
    source = FakeSource(confirms=False)
    async with topics_of(source) as topics, trio.open_nursery() as nursery:

        async def hold() -> None:
            async with topics.hold(at(), NAME, NONE) as topic:
                source.told.event(occurrence("a"), None)
                before = topic.head
                source.told.active(None, truncated=False)
                assert topic.after(before, 10).truncated
                nursery.cancel_scope.cancel()

        nursery.start_soon(hold)
        await wait_all_tasks_blocked()
        source.told.active(None, truncated=False)


async def _refused(topics: Topics, raised: list[Any]) -> None:
    """Hold a topic that cannot be opened."""
    with pytest.raises((RemoteError, ServerError)) as refused:
        async with topics.hold(at(), NAME, NONE):
            pass
    raised.append(refused.value)


async def test_what_cannot_be_opened_says_why_and_may_be_tried_again(autojump_clock: MockClock) -> None:
    source = FakeSource(confirms=False)
    refusals: list[Exception] = [
        RemoteError(ErrorObject(-32602, "no")),
        ServerError("away"),
        Terminated(ErrorObject(FORBIDDEN, "Forbidden")),
    ]
    async with topics_of(source) as topics:
        for refusal in refusals:
            raised: list[Any] = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_refused, topics, raised)
                nursery.start_soon(_refused, topics, raised)
                await wait_all_tasks_blocked()
                source.followed[-1].fail(refusal)
            assert len(raised) == 2
            error = raised[0]
            assert error is refusal or error.error.code == FORBIDDEN
            await wait_all_tasks_blocked()
        assert len(source.followed) == 3
        with pytest.raises(CallTimedOut, match="not confirmed within 20 s"):
            async with topics.hold(at(), NAME, NONE):
                pass


async def test_what_its_source_ends_is_over_for_all_who_hold_it() -> None:
    source = FakeSource()
    async with topics_of(source) as topics, topics.hold(at(), NAME, NONE) as topic:
        await source.tell("a")
        source.followed[-1].fail(Terminated(GONE))
        await topic.wait_after(topic.head)
        assert topic.ended == GONE
        assert ids(topic) == ["a"]
        async with topics.hold(at(), NAME, NONE) as fresh:  # it may be there again
            assert fresh is not topic
            assert fresh.ended is None


async def test_a_bug_costs_one_topic(caplog: pytest.LogCaptureFixture) -> None:
    source = FakeSource()
    async with topics_of(source) as topics, topics.hold(at(), NAME, NONE) as topic:
        source.followed[-1].fail(KeyError("bug"))
        await topic.wait_after(topic.head)
        assert (topic.closed, topic.ended) == (True, None)
        async with topics.hold(at(), NAME, NONE) as fresh:
            assert not fresh.closed
    assert "a bug while following events" in caplog.text


async def test_principals_share_how_much_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics_module, "MAX_TOPICS", 4)
    async with topics_of(FakeSource()) as topics, trio.open_nursery() as nursery:

        async def hold(who: str, number: int) -> None:
            async with topics.hold(at(who), NAME, msgspec.Raw(b'{"n":%d}' % number)):
                await trio.sleep_forever()

        for number in range(2):
            nursery.start_soon(hold, "ann", number)
        await wait_all_tasks_blocked()
        with pytest.raises(TooManyEvents) as refused:
            async with topics.hold(at("ann"), NAME, msgspec.Raw(b'{"n":7}')):
                pass
        assert refused.value.data()["limit"] == "subscriptions"
        async with topics.hold(at("ann"), NAME, msgspec.Raw(b'{"n":1}')):
            pass  # what is followed may be shared by any number
        async with topics.hold(at("bob"), NAME, msgspec.Raw(b'{"n":7}')):
            nursery.cancel_scope.cancel()


async def test_nobody_has_all_topics_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics_module, "MAX_TOPICS_OF_SERVER", 4)
    source = FakeSource()
    async with topics_of(source) as topics, AsyncExitStack() as stack:
        for number in range(2):
            await stack.enter_async_context(topics.hold(at("ann"), NAME, msgspec.Raw(b'{"n":%d}' % number)))
        with pytest.raises(TooManyEvents, match="for others") as refused:
            async with topics.hold(at("ann"), NAME, msgspec.Raw(b'{"n":7}')):
                pass
        assert (refused.value.code, refused.value.details) == (-32025, {"limit": "subscriptions", "max": 4})
        await stack.enter_async_context(topics.hold(at("bob"), NAME, msgspec.Raw(b'{"n":8}')))
        source.launch = "other"
        await stack.enter_async_context(topics.hold(at("ann"), NAME, msgspec.Raw(b'{"n":7}')))


async def test_what_nobody_holds_gives_way_to_what_is_wanted(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(topics_module, "MAX_TOPICS", 3)
    source = FakeSource()

    async def take(who: str, number: int) -> Topic:
        async with topics.hold(at(who), NAME, msgspec.Raw(b'{"n":%d}' % number)) as topic:
            await trio.sleep(1)
            return topic

    async with topics_of(source) as topics:
        one, other = await take(LOCAL, 1), await take(LOCAL, 2)
        async with topics.hold(at(), NAME, msgspec.Raw(b'{"n":1}')):
            await take(LOCAL, 3)
            last = await take(LOCAL, 4)  # there is room for three: the one that was left first ends
            await wait_all_tasks_blocked()
            assert (one.closed, other.closed, last.closed, source.following) == (False, True, False, 3)
            theirs = await take("bob", 5)  # bob has none, another one has more than that
            assert (await take(LOCAL, 1)) is one
            await take(LOCAL, 6)  # an own one, not bob's
            await wait_all_tasks_blocked()
            assert (theirs.closed, last.closed, source.following) == (False, True, 3)
        await trio.sleep(LINGER_S + 1)
        assert source.following == 0
        await take(LOCAL, 2)
        assert source.following == 1


@pytest.mark.parametrize(
    "arguments", [b"[]", b"7", b'"x"', b"{", b'{"a":' * 3000 + b"1" + b"}" * 3000, b'{"a":"%b"}' % (b"x" * 70_000)]
)
async def test_arguments_are_an_object_of_some_size(arguments: bytes) -> None:
    async with topics_of(FakeSource()) as topics:
        with pytest.raises(InvalidArguments):
            async with topics.hold(at(), NAME, msgspec.Raw(arguments)):
                pass
    assert len(arguments) < 2 * MAX_ARGUMENTS_BYTES


@pytest.mark.parametrize(
    "said",
    [
        b"7",
        b"{}",
        b'{"eventId":"","timestamp":"x","data":{}}',
        b'{"eventId":7,"timestamp":"x","data":{}}',
        b'{"eventId":"a","data":{}}',
        b'{"eventId":"a","timestamp":"x","data":[]}',
        b'{"eventId":"a","timestamp":"x","data":{"a":"%b"}}' % (b"x" * MAX_EVENT_BYTES),
    ],
)
async def test_what_is_no_event_is_dropped_and_told(said: bytes) -> None:
    source = FakeSource()
    async with topics_of(source) as topics, topics.hold(at(), NAME, NONE) as topic:
        before = topic.head
        source.told.event(msgspec.Raw(said), "1")
        assert (topic.head, topic.failures) == (before, 1)
        await topic.wait_after(topic.head, 0)
        assert topic.failure is not None
        assert "dropped" in topic.failure.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_one_form_says_the_same_and_is_its_own(value: Any) -> None:
    text = msgspec.Raw(msgspec.json.format(msgspec.json.encode(value), indent=2))
    made = canonical(text)
    assert msgspec.json.decode(made) == value
    assert canonical(msgspec.Raw(made)) == made
    assert canonical(msgspec.Raw(msgspec.json.encode(value, order="sorted"))) == made
