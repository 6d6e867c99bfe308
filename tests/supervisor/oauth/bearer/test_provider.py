"""The keys of an identity provider: read when they are needed, kept while it is away, and asked for seldom."""

from __future__ import annotations

import json
import logging

import pytest
import trio
import trio.testing
from joserfc.jwk import RSAKey

from actors.errors import ProviderUnavailable
from supervisor.identity.people import Introspection, Issuer
from supervisor.identity.requester import TokenRefused, UnknownKey
from supervisor.oauth.bearer.verifier import (
    ANSWER_S,
    FRESH_S,
    REFRESH_EVERY_S,
    RETRY_EVERY_S,
    STALE_S,
    IdentityProvider,
)
from tests.fakes.identity_provider import DOOR, ISSUER, NOW, RSA, MemoryProvider, key_set, signed

NEW = RSAKey.generate_key(2048, {"kid": "new"})
ASKING = Issuer(issuer=ISSUER, introspection=Introspection(client_id="mcpvisor", client_secret="a b/c"))


async def first(provider: IdentityProvider, token: str) -> str:
    """Whose a token is, keys read if need be."""
    grant = provider.check(token, NOW) or await provider.check_with_new_keys(token, NOW)
    return grant.subject


async def test_keys_are_read_once_and_then_nobody_waits(autojump_clock: object, nursery: trio.Nursery) -> None:
    there = MemoryProvider()
    provider = IdentityProvider(Issuer(issuer=ISSUER), nursery, there)
    assert provider.check(signed(), NOW) is None
    assert await first(provider, signed())
    for _ in range(100):
        assert provider.check(signed(), NOW) is not None
    assert there.asked == {"/.well-known/oauth-authorization-server": 1, "/jwks": 1}


async def test_a_hundred_who_wait_are_one_reading(autojump_clock: object, nursery: trio.Nursery) -> None:
    there = MemoryProvider()
    there.slow_s = 1.0
    provider = IdentityProvider(Issuer(issuer=ISSUER), nursery, there)
    async with trio.open_nursery() as waiting:
        for _ in range(100):
            waiting.start_soon(first, provider, signed())
    assert there.asked["/jwks"] == 1


async def test_an_unknown_key_is_looked_for_once_in_half_a_minute(
    autojump_clock: object, nursery: trio.Nursery
) -> None:
    there = MemoryProvider()
    provider = IdentityProvider(Issuer(issuer=ISSUER), nursery, there)
    await first(provider, signed())
    for _ in range(50):
        with pytest.raises(UnknownKey):
            await first(provider, signed(NEW))
        assert provider.check(signed(), NOW) is not None
    assert there.asked["/jwks"] == 1, "the keys were read a moment ago"
    there.keys = (RSA, NEW)
    await trio.sleep(REFRESH_EVERY_S)
    assert await first(provider, signed(NEW))
    assert there.asked["/jwks"] == 2


@pytest.mark.parametrize("jwks", [b"", b'{"keys":[]}', b"{" * 60_000, key_set(RSA, use="enc")])
async def test_what_comes_back_as_no_keys_takes_none_away(
    jwks: bytes, autojump_clock: object, nursery: trio.Nursery
) -> None:
    there = MemoryProvider()
    provider = IdentityProvider(Issuer(issuer=ISSUER), nursery, there)
    await first(provider, signed())
    there.jwks = jwks
    await trio.sleep(REFRESH_EVERY_S)
    for _ in range(20):
        with pytest.raises(UnknownKey):
            await first(provider, signed(NEW))
        assert provider.check(signed(), NOW) is not None
    assert there.asked["/jwks"] == 2


async def test_keys_that_are_withdrawn_are_forgotten(autojump_clock: object, nursery: trio.Nursery) -> None:
    there = MemoryProvider()
    provider = IdentityProvider(Issuer(issuer=ISSUER), nursery, there)
    await first(provider, signed())
    there.keys = (NEW,)
    await trio.sleep(FRESH_S + 1)
    assert provider.check(signed(), NOW) is not None, "nobody waits while they are read again"
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(UnknownKey):
        await first(provider, signed())


async def test_old_keys_serve_for_a_day_while_the_provider_is_away(
    autojump_clock: object, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    there = MemoryProvider()
    provider = IdentityProvider(Issuer(issuer=ISSUER), nursery, there)
    await first(provider, signed())
    there.down = True
    with caplog.at_level(logging.WARNING):
        for _ in range(23):
            await trio.sleep(FRESH_S)
            assert provider.check(signed(), NOW) is not None
    assert "its keys cannot be read: it is down" in caplog.text
    await trio.sleep(STALE_S)
    assert provider.check(signed(), NOW) is None
    with pytest.raises(ProviderUnavailable):
        await first(provider, signed())


async def test_a_provider_that_is_away_at_first_is_asked_again_soon_but_not_at_once(
    autojump_clock: object, nursery: trio.Nursery
) -> None:
    there = MemoryProvider()
    there.down = True
    provider = IdentityProvider(Issuer(issuer=ISSUER), nursery, there)
    for _ in range(20):
        with pytest.raises(ProviderUnavailable) as caught:
            await first(provider, signed())
    assert caught.value.http_status == 503
    assert there.asked["/.well-known/oauth-authorization-server"] == 1
    there.down = False
    await trio.sleep(RETRY_EVERY_S)
    assert await first(provider, signed())


async def test_a_provider_that_is_slow_costs_five_seconds_and_no_login(
    autojump_clock: object, nursery: trio.Nursery
) -> None:
    there = MemoryProvider()
    there.slow_s = 1000.0
    begun = trio.current_time()
    provider = IdentityProvider(ASKING, nursery, there)
    for ask in (provider.check_with_new_keys, provider.introspect):
        with pytest.raises(ProviderUnavailable):
            await ask(signed(), NOW)
    assert trio.current_time() - begun == pytest.approx(2 * ANSWER_S)


async def test_a_question_says_who_asks_and_about_what(autojump_clock: object, nursery: trio.Nursery) -> None:
    there = MemoryProvider()
    there.said["opaque"] = {"active": True, "sub": "a", "aud": DOOR, "scope": "mcp:read", "exp": NOW + 5}
    provider = IdentityProvider(ASKING, nursery, there)
    grant = await provider.introspect("opaque", NOW)
    assert (grant.subject, grant.expires_at) == ("a", NOW + 5)
    assert there.headers["authorization"] == "Basic bWNwdmlzb3I6YSUyMGIlMkZj", "encoded by RFC 6749 2.3.1"
    with pytest.raises(TokenRefused):
        await provider.introspect("other", NOW)
    assert "a b/c" not in repr(provider.issuer)
    assert json.dumps(there.asked)
