"""What is remembered of tokens, and that nobody keeps others from having theirs checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from actors.errors import ProviderUnavailable
from supervisor.identity.people import Introspection, Issuer, People
from supervisor.identity.requester import TokenGrant, TokenRefused
from supervisor.oauth.bearer import verifier as module
from supervisor.oauth.bearer.verifier import GOOD_S, MAX_QUESTIONS, WRONG_S, IdentityProvider, Verifier
from supervisor.servers.deployment import Deployment
from tests.fakes.deployments import deployment
from tests.fakes.identity_provider import DOOR, ISSUER, NOW, MemoryProvider, signed

SIGNED = Issuer(issuer=ISSUER)
ASKED = Issuer(issuer=ISSUER, introspection=Introspection(client_id="a", client_secret="b"))
YES = {"active": True, "sub": "248289", "aud": DOOR, "scope": "mcp:read"}
Make = Callable[..., Verifier]


@pytest.fixture
def there() -> MemoryProvider:
    return MemoryProvider()


@pytest.fixture
def make(there: MemoryProvider, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setattr(module, "IdentityProvider", lambda issuer, nursery: IdentityProvider(issuer, nursery, there))

    def clock() -> float:
        return NOW + trio.current_time()

    return lambda *issuers: Verifier(deployment(identity=People(issuers=issuers)), clock, nursery)


async def find(verifier: Verifier, token: str, address: str = "192.0.2.1") -> TokenGrant:
    known = verifier.recall(token)
    if isinstance(known, TokenRefused):
        raise known
    return known or await verifier.ask(token, address)


async def test_a_jwt_waits_for_keys_alone(autojump_clock: object, make: Make, there: MemoryProvider) -> None:
    verifier = make(SIGNED)
    assert verifier.recall(signed()) is None
    assert (await find(verifier, signed())).subject == "248289"
    assert isinstance(verifier.recall(signed()), TokenGrant)
    assert isinstance(verifier.recall(signed(sub="other")), TokenGrant)
    assert there.asked["/introspect"] == 0


async def test_what_is_of_nobody_we_know_costs_no_request(
    autojump_clock: object, make: Make, there: MemoryProvider
) -> None:
    verifier = make(SIGNED)
    for token in (signed(iss="https://evil.example"), signed(iss=None), "opaque", "a.b.c", ""):
        assert isinstance(verifier.recall(token), TokenRefused), token
    assert not there.asked


async def test_an_answer_is_remembered_for_a_minute_and_a_no_for_five_seconds(
    autojump_clock: object, make: Make, there: MemoryProvider
) -> None:
    verifier = make(ASKED)
    there.said["good"] = YES
    for _ in range(10):
        assert (await find(verifier, "good")).subject
        with pytest.raises(TokenRefused):
            await find(verifier, "bad")
    assert there.asked["/introspect"] == 2
    await trio.sleep(WRONG_S)
    assert isinstance(verifier.recall("good"), TokenGrant)
    with pytest.raises(TokenRefused):
        await find(verifier, "bad")
    assert there.asked["/introspect"] == 3
    await trio.sleep(GOOD_S - WRONG_S)
    assert verifier.recall("good") is None


async def test_nothing_is_remembered_beyond_the_end_of_a_token(
    autojump_clock: object, make: Make, there: MemoryProvider
) -> None:
    verifier = make(ASKED)
    there.said["short"] = {**YES, "exp": NOW + 3}
    assert (await find(verifier, "short")).subject
    await trio.sleep(3)
    assert verifier.recall("short") is None


async def test_a_forged_jwt_costs_no_question_and_a_revoked_one_is_heard_of(
    autojump_clock: object, make: Make, there: MemoryProvider
) -> None:
    verifier, token = make(ASKED), signed()
    there.said[token] = YES
    assert (await find(verifier, token)).subject
    assert isinstance(verifier.recall(token[:-8] + "AAAAAAAA"), TokenRefused)
    assert there.asked["/introspect"] == 1
    del there.said[token]
    assert not verifier.is_due(token)
    await trio.sleep(GOOD_S)
    assert verifier.is_due(token)
    there.down = True
    assert not await verifier.is_revoked(token), "nobody says so"
    there.down = False
    assert await verifier.is_revoked(token)
    assert isinstance(verifier.recall(token), TokenRefused)
    stolen = signed(sub="a")
    there.said[stolen] = {**YES, "sub": "b"}
    with pytest.raises(TokenRefused, match="somebody else"):
        await find(verifier, stolen)


async def test_a_token_that_is_no_jwt_is_shown_to_one_provider(
    autojump_clock: object, make: Make, there: MemoryProvider
) -> None:
    other = Issuer(issuer="https://other.example", introspection=ASKED.introspection)
    verifier = make(ASKED, other)
    with pytest.raises(TokenRefused):
        await find(verifier, "opaque")
    assert there.asked["/introspect"] == 1


async def test_the_same_token_is_asked_about_once_and_who_leaves_takes_nothing_along(
    autojump_clock: object, make: Make, there: MemoryProvider
) -> None:
    verifier = make(ASKED)
    there.said["good"], there.slow_s = YES, 1.0
    got: list[TokenGrant] = []

    async def one() -> None:
        got.append(await find(verifier, "good"))

    async with trio.open_nursery() as waiting:
        with trio.move_on_after(0.5):
            await find(verifier, "good")
        for _ in range(20):
            waiting.start_soon(one)
    assert len(got) == 20
    assert there.asked["/introspect"] == 1


async def test_a_flood_from_one_address_leaves_room_for_others(
    autojump_clock: object, make: Make, there: MemoryProvider
) -> None:
    verifier = make(ASKED)
    there.slow_s = 4.0
    there.said["good"] = YES
    refused = 0

    async def flood(number: int) -> None:
        nonlocal refused
        try:
            await find(verifier, f"wrong{number}", "203.0.113.9")
        except ProviderUnavailable as error:
            refused += error.retry_after_s == 1.0
        except TokenRefused:
            pass

    async with trio.open_nursery() as flooding:
        for number in range(200):
            flooding.start_soon(flood, number)
        await trio.testing.wait_all_tasks_blocked()
        begun = trio.current_time()
        there.slow_s = 0.1
        assert (await find(verifier, "good", "192.0.2.1")).subject
        assert trio.current_time() - begun < 1
    assert refused == 200 - MAX_QUESTIONS // 2


async def test_other_providers_in_the_file_are_known_at_once(
    autojump_clock: object, there: MemoryProvider, make: Make, nursery: trio.Nursery
) -> None:
    make(SIGNED)  # for what it patches
    cell = deployment(identity=People(issuers=(SIGNED,)))
    verifier = Verifier(cell, lambda: NOW, nursery)
    assert (await find(verifier, signed())).subject
    _set(cell, deployment(identity=People()).value)
    assert isinstance(verifier.recall(signed()), TokenRefused)


def _set(cell: Any, newer: Deployment) -> None:
    cell.set(newer)


async def test_a_bug_of_ours_keeps_nobody_waiting(
    autojump_clock: object, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier = make(ASKED)

    async def broken(*_: object) -> TokenGrant:
        raise RuntimeError

    monkeypatch.setattr(IdentityProvider, "introspect", broken)
    with pytest.raises(ProviderUnavailable):
        await find(verifier, "opaque")


async def test_wrong_tokens_push_out_no_good_one(
    autojump_clock: object, make: Make, there: MemoryProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WRONG", 3)
    verifier = make(ASKED)
    there.said["good"] = YES
    assert (await find(verifier, "good")).subject
    for number in range(20):
        with pytest.raises(TokenRefused):
            await find(verifier, str(number))
    assert isinstance(verifier.recall("good"), TokenGrant)
    assert verifier.recall("0") is None
