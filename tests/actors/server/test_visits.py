"""What a server tells of visits to addresses reaches whoever it asked for them, during the call and afterwards."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import CannotAsk
from actors.kit import Reply
from actors.messages import Note, Question
from actors.principal import LOCAL, ClientKey
from actors.protocol.agreement.capabilities import OF_CLIENTS
from actors.protocol.agreement.era import Terms
from actors.protocol.asking.questions import COMPLETE, Visitor
from actors.protocol.wire.jsonrpc import RemoteError
from actors.server import ServerSettings
from tests.actors.server.rig import Rig, running_server
from tests.fakes.mcp_server import FakeServer

ASKING = ServerSettings(terms=Terms(capabilities=OF_CLIENTS))


class Caller:
    """Says yes to questions. `later`: what it heard outside of calls; `room`: whether it hears during calls."""

    def __init__(self, *, hears: bool = True, room: bool = True, refuses: bool = False) -> None:
        self.notes: list[bytes] = []
        self.later: list[str] = []
        self._hears = hears
        self._room = room
        self._refuses = refuses

    def note(self, note: Note) -> bool:
        assert note.method == COMPLETE
        self.notes.append(note.params)
        return self._room

    def ask(self, question: Question) -> Reply[msgspec.Raw]:
        self._reply: Reply[msgspec.Raw] = Reply()
        if self._refuses:
            self._reply.fail(CannotAsk("no"))
        return self._reply

    @property
    def identity(self) -> ClientKey:
        return LOCAL, self

    def visitor(self, question: Question | None = None) -> Visitor | None:
        if question is not None:
            self._reply.answer(msgspec.Raw(b'{"action":"accept"}'))
        return self.take if self._hears else None

    def take(self, id_: str) -> bool:
        self.later.append(id_)
        return True


async def tell(rig: Rig, *ids: Any) -> int:
    """Let the server tell of the end of visits; return how many it told in vain so far."""
    for id_ in ids:
        await rig.fake.visited(id_)
    await wait_all_tasks_blocked()
    return rig.actor.status().unheard


async def test_after_the_call_exactly_that_client_hears_and_once(autojump_clock: MockClock) -> None:
    one, two = Caller(), Caller()
    async with running_server(settings=ASKING) as rig:
        await rig.call("visit", exchange=one, ids=["a"])
        await rig.call("visit", exchange=two, ids=["b"])
        unheard = [await tell(rig, "a"), await tell(rig, "a"), await tell(rig, "foreign"), await tell(rig, 7)]
    assert (one.later, two.later, one.notes, two.notes) == (["a"], [], [], [])
    assert unheard == [0, 1, 2, 3]


@pytest.mark.parametrize("room", [True, False])
async def test_during_the_call_it_is_a_note_of_the_call_if_there_is_room(autojump_clock: MockClock, room: bool) -> None:
    caller = Caller(room=room)
    async with running_server(settings=ASKING) as rig:
        await rig.call("visit", exchange=caller, ids=["a"], done=["a"])
        assert await tell(rig) == 0
    assert caller.notes == [b'{"elicitationId":"a"}']
    assert caller.later == ([] if room else ["a"])


async def test_who_was_not_asked_hears_nothing(autojump_clock: MockClock) -> None:
    caller = Caller(refuses=True)
    async with running_server(settings=ASKING) as rig:
        await rig.call("visit", exchange=caller, ids=["a"])
        assert await tell(rig, "a") == 1
    assert caller.later == []


async def test_a_modern_server_has_no_such_thing(autojump_clock: MockClock) -> None:
    caller = Caller()
    async with running_server(FakeServer(probe="modern"), era=None) as rig:
        with pytest.raises(RemoteError):
            await rig.call("visit", exchange=caller, by_error=["a"])
        assert await tell(rig, "a") == 1
    assert caller.later == []
