"""What a credential that is over ends, and what is answered nevertheless."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import cast

import pytest
import trio
import trio.testing

from actors.kit import Latest
from supervisor.front.admission import ANSWER_S, LOOK_EVERY_S, Ongoing
from supervisor.front.edge.request import HttpRequest
from supervisor.identity.people import Person
from supervisor.identity.requester import Bearer, Requester, TokenGrant
from supervisor.identity.tokens import SavedToken
from supervisor.servers.deployment import Deployment
from tests.fakes.deployments import deployment

ANA, LIFE_S, CONNECTIONS = Person(user="ana"), 10.0, 100


class Provider:
    """Knows no token any more."""

    def is_due(self, token: str) -> bool:
        return True

    async def is_revoked(self, token: str) -> bool:
        await trio.lowlevel.checkpoint()
        return True


def request_of(requester: Requester, *, is_websocket: bool = False) -> HttpRequest:
    shown = SimpleNamespace(requester=requester, principal=requester.principal, is_websocket=is_websocket)
    return cast("HttpRequest", shown)


class House:
    def __init__(self) -> None:
        self.person: Person | None = ANA
        self.deployment: Latest[Deployment] = deployment()
        self.ongoing = Ongoing(
            lambda _: self.person, self.deployment, trio.current_time, cast("Bearer", Provider()), CONNECTIONS
        )
        self.ends: dict[str, float] = {}

    async def ask(self, name: str, requester: Requester, *, endless: bool = False, is_websocket: bool = False) -> None:
        request = request_of(requester, is_websocket=is_websocket)
        with self.ongoing.stay(request):
            if endless:
                request.end_with_credential(None)
            await trio.sleep(3 * LIFE_S)
        self.ends[name] = trio.current_time()

    async def listen(self, name: str, requester: Requester) -> None:
        """Be a stream that is ended in order."""
        request = request_of(requester)
        with self.ongoing.stay(request):
            with trio.CancelScope() as part:
                request.end_with_credential(part)
                await trio.sleep(3 * LIFE_S)
            await trio.lowlevel.checkpoint()
            self.ends[name] = trio.current_time()


def token(digest: bytes = b"d") -> Requester:
    expires_at = trio.current_time() + LIFE_S
    return Requester(
        person=ANA, credential="c", token=SavedToken(digest=digest, user="ana", role="member", expires_at=expires_at)
    )


def grant(life_s: float) -> Requester:
    expires_at = trio.current_time() + life_s
    granted = TokenGrant(issuer="i", subject="s", scopes=frozenset(), audiences=(), expires_at=expires_at)
    return Requester(person=ANA, credential="c", grant=granted, shown="text")


async def ended(
    autojump_clock: trio.testing.MockClock, happens: Callable[[House], None] | None = None
) -> dict[str, float]:
    """Return the seconds after which each kind ended, where something happens one second after the beginning."""
    house, begun = House(), trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.ongoing.run)
        async with trio.open_nursery() as asked:
            asked.start_soon(house.ask, "call", token())
            asked.start_soon(partial(house.ask, "stream", token(), endless=True))
            asked.start_soon(house.listen, "events", token())
            asked.start_soon(partial(house.ask, "socket", token(), is_websocket=True))
            asked.start_soon(house.ask, "other", token(b"other"))
            await trio.sleep(1)
            if happens is not None:
                happens(house)
        nursery.cancel_scope.cancel()
    return {name: at - begun for name, at in house.ends.items()}


@pytest.mark.case("I12")
async def test_a_credential_that_expires_ends_what_has_no_end_of_its_own(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ends = await ended(autojump_clock)
    at_once = dict.fromkeys(("stream", "events", "socket"), LIFE_S)
    assert ends == pytest.approx({**at_once, "call": 3 * LIFE_S, "other": 3 * LIFE_S})


@pytest.mark.case("W10")
async def test_a_token_that_is_revoked_ends_all_that_it_has_open(autojump_clock: trio.testing.MockClock) -> None:
    ends = await ended(autojump_clock, lambda house: house.ongoing.revoke(b"d"))
    at_once = dict.fromkeys(("stream", "events", "socket", "call"), 1)
    assert ends == pytest.approx({**at_once, "other": 3 * LIFE_S})


@pytest.mark.case("I17")
async def test_whoever_may_something_else_has_a_moment(autojump_clock: trio.testing.MockClock) -> None:
    def move(house: House) -> None:
        house.person = Person(user="ana", role="admin")
        house.deployment.set(house.deployment.value)

    assert await ended(autojump_clock, move) == pytest.approx(
        dict.fromkeys(("call", "stream", "events", "socket", "other"), 1 + ANSWER_S)
    )


async def test_a_provider_that_knows_a_token_no_more_ends_what_it_has_open_before_it_expires(
    autojump_clock: trio.testing.MockClock,
) -> None:
    house, begun = House(), trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.ongoing.run)
        async with trio.open_nursery() as asked:
            asked.start_soon(house.ask, "revoked", grant(LIFE_S))
            asked.start_soon(house.ask, "expired", grant(LOOK_EVERY_S / 2))
        nursery.cancel_scope.cancel()
    ends = {name: at - begun for name, at in house.ends.items()}
    assert ends == pytest.approx({"revoked": LOOK_EVERY_S, "expired": 3 * LIFE_S})


async def test_nobody_takes_all_connections_from_others(autojump_clock: trio.testing.MockClock) -> None:
    house = House()
    async with trio.open_nursery() as nursery:
        for number in range(CONNECTIONS // 2):
            nursery.start_soon(house.ask, str(number), token())
        await trio.sleep(1)
        refused = house.ongoing.refusal(request_of(token()))
        assert refused is not None
        assert refused.message.startswith("50 requests of yours are open")
        assert house.ongoing.refusal(request_of(Requester(person=Person(user="ben")))) is None
    assert house.ongoing.refusal(request_of(token())) is None
