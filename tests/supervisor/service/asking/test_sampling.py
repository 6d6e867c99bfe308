"""Clients whose models are asked for sentences: who is, how often, and that the search which waits has its answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from supervisor.identity.people import Person
from supervisor.identity.requester import EXECUTE, ORIGIN, READ, THE_OPERATOR, Requester, RequestOrigin, TokenGrant
from supervisor.phrases.asking import MAX_ANSWER_BYTES, Message
from supervisor.service.asking import sampling as module
from supervisor.service.asking.exchange import Exchange, QuestionTable
from supervisor.service.asking.sampling import LONGEST_PAUSE_S, MAX_WAIT_S, PAUSE_S, Sampling
from supervisor.service.client import Client
from supervisor.store.records import PHRASES
from tests.fakes.chat_model import answer_to, defined
from tests.fakes.exchanges import Ear, exchange
from tests.fakes.rows import MemoryRows
from tests.supervisor.phrases.test_describing import Scene, running, say

ABLE = msgspec.Raw(b'{"sampling":{}}')
SESSION = Client(name="a", capabilities=ABLE, session="s")


class Asked:
    """A client in a session, and one search of it after the other."""

    def __init__(self, sampling: Sampling, scene: Scene, client: Client = SESSION) -> None:
        self._sampling = sampling
        self._scene = scene
        self.client = client
        self.ear = Ear()
        self.questions = QuestionTable()

    def exchange(self) -> Exchange:
        return exchange(self.client, "tools/call", ear=self.ear, questions=self.questions)

    async def search(self, answer: bytes | None = None, error: bytes = b"", *, silent: bool = False) -> bool:
        """Search; return whether the client was asked. It answers this, or does as it is told."""
        before = len(self.asked)
        request = self.exchange()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._sampling.describe, request, self._scene.catalogue.value)
            await wait_all_tasks_blocked()
            if len(self.asked) > before and not silent:
                question = self.asked[-1]
                said = answer or (b"" if error else sampled(answer_to(messages_in(question), say)))
                self.questions.on_answer(question["id"], msgspec.Raw(said), msgspec.Raw(error))
        request.close()
        return len(self.asked) > before

    @property
    def asked(self) -> list[Any]:
        return [each for each in self.ear.heard if each["method"] == "sampling/createMessage"]


def sampled(text: str) -> bytes:
    return json.dumps({"role": "assistant", "content": {"type": "text", "text": text}, "model": "m"}).encode()


def messages_in(question: Any) -> Sequence[Message]:
    return [{"content": message["content"]["text"]} for message in question["params"]["messages"]]


def came_as(requester: Requester | None) -> None:
    ORIGIN.set(RequestOrigin(requester))


def scene_of(tools: int = 100) -> Scene:
    scene = Scene(MemoryRows(PHRASES), by_clients=True, batch=1)
    scene.offer(notes=[defined(f"tool{number}x", "y") for number in range(tools)])
    return scene


async def test_a_client_is_asked_by_a_system_prompt_and_a_text_and_rests_after_it(autojump_clock: object) -> None:
    came_as(THE_OPERATOR)
    async with running(scene_of()) as scene:
        sampling = Sampling(scene.describing, 120.0, trio.Event())
        one, two = (Asked(sampling, scene, Client(name=name, capabilities=ABLE, session=name)) for name in "ab")
        assert await one.search()
        params = one.asked[0]["params"]
        assert params["systemPrompt"].startswith("You write what people type into a search")
        assert [message["role"] for message in params["messages"]] == ["user"]
        assert "includeContext" not in params
        assert scene.sources.said("notes", defined("tool0x", "y")).source == "sampling"
        one.client = msgspec.structs.replace(one.client, session="another")
        assert (await one.search(), await two.search()) == (False, True)
        await trio.sleep(PAUSE_S)
        assert await one.search()


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"error": b'{"code":-1,"message":"User rejected sampling request"}'}, "it refuses to answer"),
        ({"silent": True}, f"it gave no answer within {MAX_WAIT_S:g} s"),
        ({"answer": sampled("I would rather not.")}, "nothing that it answers is of use"),
        ({"answer": b'{"role":"assistant","content":[7]}'}, "nothing that it answers is of use"),
        ({"answer": sampled("{" + " " * MAX_ANSWER_BYTES + "}")}, "nothing that it answers is of use"),
    ],
)
async def test_a_client_of_no_use_is_left_alone_for_longer_each_time(
    autojump_clock: object, how: dict[str, Any], why: str
) -> None:
    came_as(THE_OPERATOR)
    async with running(scene_of()) as scene:
        asked = Asked(Sampling(scene.describing, 120.0, trio.Event()), scene)
        for pause in (2 * PAUSE_S, 4 * PAUSE_S, 8 * PAUSE_S):
            assert await asked.search(**how)
            assert scene.describing.status().last_failure == why
            await trio.sleep(pause - 1)
            assert not await asked.search(**how)
            await trio.sleep(1)
        for _ in range(10):
            assert await asked.search(**how)
            await trio.sleep(LONGEST_PAUSE_S)
        assert await asked.search()
        await trio.sleep(PAUSE_S)
        assert await asked.search()
        assert scene.conditions.now() == []  # the daemon lacks nothing


async def test_a_search_waits_so_long_and_no_longer_and_then_the_question_is_taken_back(
    autojump_clock: object,
) -> None:
    came_as(THE_OPERATOR)
    async with running(scene_of()) as scene:
        for most, waits in ((120.0, MAX_WAIT_S), (3.0, 3.0)):
            asked, began = Asked(Sampling(scene.describing, most, trio.Event()), scene), trio.current_time()
            assert await asked.search(silent=True)
            assert trio.current_time() - began == waits
            assert [each["method"] for each in asked.ear.heard[1:]] == ["notifications/cancelled"]


async def test_a_search_waits_for_nobody_at_the_end_of_the_daemon(autojump_clock: object) -> None:
    came_as(THE_OPERATOR)
    closing = trio.Event()
    async with running(scene_of()) as scene, trio.open_nursery() as nursery:
        sampling, began = Sampling(scene.describing, 120.0, closing), trio.current_time()
        nursery.start_soon(sampling.run)
        nursery.start_soon(partial(Asked(sampling, scene).search, silent=True))
        await trio.sleep(1)
        closing.set()
        await wait_all_tasks_blocked()
        assert not await Asked(sampling, scene, Client(name="b", capabilities=ABLE, session="t")).search()
        assert trio.current_time() - began == 1


async def test_while_one_client_is_asked_no_other_is(autojump_clock: object) -> None:
    came_as(THE_OPERATOR)
    async with running(scene_of()) as scene, trio.open_nursery() as nursery:
        sampling = Sampling(scene.describing, 120.0, trio.Event())
        nursery.start_soon(partial(Asked(sampling, scene).search, silent=True))
        await trio.sleep(1)
        other = Asked(sampling, scene, Client(name="b", capabilities=ABLE, session="t"))
        assert not await other.search()
        await trio.sleep(MAX_WAIT_S)
        assert await other.search()


def granted(*scopes: str) -> Requester:
    grant = TokenGrant(issuer="i", subject="s", audiences=(), scopes=frozenset(scopes), expires_at=0.0)
    return Requester(person=Person(user="ana", role="admin"), credential="c", grant=grant)


@pytest.mark.parametrize(
    ("client", "requester", "may_be"),
    [
        (SESSION, THE_OPERATOR, True),
        (SESSION, Requester(person=Person(user="ana", role="admin"), credential="c"), True),
        (SESSION, Requester(person=Person(user="ana", role="auditor"), credential="c"), False),
        (SESSION, Requester(person=Person(user="ana"), credential="c"), False),
        (SESSION, granted(EXECUTE), True),
        (SESSION, granted(READ), False),
        (SESSION, None, False),
        (Client(name="a", session="s"), THE_OPERATOR, False),
        (Client(era="modern", version="2026-07-28", name="a", capabilities=ABLE), THE_OPERATOR, False),
    ],
)
async def test_only_who_may_change_what_others_find_is_asked_and_only_in_a_session_that_can_be(
    autojump_clock: object, client: Client, requester: Requester | None, may_be: bool
) -> None:
    came_as(requester)
    async with running(scene_of()) as scene:
        assert await Asked(Sampling(scene.describing, 120.0, trio.Event()), scene, client).search() is may_be


async def test_a_client_without_a_stream_or_that_does_not_read_is_not_waited_for(autojump_clock: object) -> None:
    came_as(THE_OPERATOR)
    async with running(scene_of()) as scene:
        sampling = Sampling(scene.describing, 120.0, trio.Event())
        deaf = Asked(sampling, scene)
        deaf.ear = Ear(room=0)
        await deaf.search()
        assert "does not read" in scene.describing.status().last_failure
        await sampling.describe(exchange(SESSION, "tools/call"), scene.catalogue.value)
        assert trio.current_time() == 1


async def test_a_bug_costs_no_search_its_answer(
    autojump_clock: object, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    came_as(THE_OPERATOR)

    def broken(result: msgspec.Raw) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(module, "sampled_text", broken)
    async with running(scene_of()) as scene:
        asked = Asked(Sampling(scene.describing, 120.0, trio.Event()), scene)
        assert await asked.search()
        assert [record.levelno for record in caplog.records if record.exc_info] == [logging.ERROR]
        assert not await asked.search()


async def test_of_very_many_clients_the_oldest_are_forgotten(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    came_as(THE_OPERATOR)
    monkeypatch.setattr(module, "MAX_RESTING", 2)
    async with running(scene_of()) as scene:
        sampling = Sampling(scene.describing, 120.0, trio.Event())
        clients = [Asked(sampling, scene, Client(name=name, capabilities=ABLE, session=name)) for name in "abc"]
        assert [await each.search() for each in (*clients, clients[2], clients[0])] == [True, True, True, False, True]
