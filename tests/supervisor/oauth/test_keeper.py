"""Tokens given out and renewed: ahead of their end, once for all who wait, and never for nothing. A virtual clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import pytest
import trio
from msgspec.structs import replace

from actors.transport.http.authorization import NoToken
from supervisor.config import OAuthConfig
from supervisor.oauth.account import AGAIN_S, GrantSharing, Keeper
from supervisor.oauth.issuers.issuer import AuthorizationServer, Grant, OAuthClient, Tokens
from supervisor.oauth.issuers.metadata import Challenge, IssuerMetadata, IssuerRefused, OAuthTrouble, Unreached

GRANT = Grant(
    server="https://a.example/mcp",
    issuer=IssuerMetadata(issuer="https://b.example"),
    resource="https://a.example/mcp",
    client=OAuthClient(id="x", registered=True),
    scope=("read",),
)
LIFE_S = 1000.0
MORE = ['Bearer error="insufficient_scope", scope="write"']


class Issuer:
    """Gives out `a1`, `a2`, ...; the next one is refused for the reason in `trouble`. Each takes a second."""

    def __init__(self) -> None:
        self.given = 0
        self.asked = 0
        self.trouble: OAuthTrouble | None = None

    async def refresh(self, grant: Grant) -> Tokens:
        self.asked += 1
        await trio.sleep(1)
        if self.trouble is not None:
            raise self.trouble
        assert grant.tokens is not None
        assert grant.tokens.refresh == f"r{self.given}"
        return self.next()

    async def begin(self, grant: Grant | None, challenge: Challenge) -> Grant:
        self.asked += 1
        await trio.sleep(1)
        if self.trouble is not None:
            raise self.trouble
        return replace(grant or GRANT, scope=(*GRANT.scope, *challenge.scope), tokens=replace(self.next(), refresh=""))

    def next(self) -> Tokens:
        self.given += 1
        now = trio.current_time()
        return Tokens(
            access=f"a{self.given}", refresh=f"r{self.given}", issued_at=now, expires_at=now + LIFE_S, scope=("read",)
        )


class Itself(Keeper):
    """Begins where a client is its own user."""

    async def begin(self, kept: Grant | None, challenge: Challenge) -> Grant:
        assert isinstance(self.issuer, Issuer)
        return await self.issuer.begin(kept, challenge)


class Kept:
    """A keeper with what is around it. `saved` is every grant that was written, `set_s` how far the clock was set."""

    def __init__(self, config: OAuthConfig, nursery: trio.Nursery) -> None:
        self.issuer = Issuer()
        self.saved: list[Grant | None] = []
        self.set_s = 0.0
        self.keeper = Itself(
            "far",
            config,
            cast("AuthorizationServer", self.issuer),
            lambda: trio.current_time() + self.set_s,
            save=self._save,
            start_soon=nursery.start_soon,
        )

    async def _save(self, grant: Grant | None) -> None:
        await trio.sleep(0.1)
        self.saved.append(grant)

    async def logged_in(self) -> Tokens:
        tokens = self.issuer.next()
        await self.keeper.take(replace(GRANT, tokens=tokens))
        return tokens


@asynccontextmanager
async def kept(config: OAuthConfig | None = None) -> AsyncIterator[Kept]:
    async with trio.open_nursery() as nursery:
        yield Kept(config or OAuthConfig(), nursery)
        nursery.cancel_scope.cancel()


async def all_of(count: int, question: Callable[[], Awaitable[Any]]) -> list[Any]:
    answers: list[Any] = []

    async def one() -> None:
        answers.append(await question())

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(one)
    return answers


async def test_without_a_login_there_is_no_token_and_the_command_is_named(autojump_clock: object) -> None:
    async with kept() as far:
        assert await far.keeper.token() == ""
        denial = await far.keeper.on_refused("", 401, ['Bearer scope="read"'])
        assert (denial.token, denial.login) == ("", True)
        assert "`mcpvisor login far`" in denial.reason
        assert far.keeper.challenge == Challenge(scope=("read",))
        assert far.issuer.asked == 0


async def test_a_token_is_renewed_before_it_ends_and_nobody_waits_for_that(autojump_clock: object) -> None:
    async with kept() as far:
        await far.logged_in()
        await trio.sleep(LIFE_S - 70)
        assert await far.keeper.token() == "a1"
        assert far.issuer.asked == 0
        await trio.sleep(15)
        began = trio.current_time()
        assert await all_of(50, far.keeper.token) == ["a1"] * 50
        assert trio.current_time() == began
        await trio.sleep(2)
        assert await far.keeper.token() == "a2"
        assert far.issuer.asked == 1
        assert far.saved[-1] == far.keeper.grant


@pytest.mark.case("H25")
async def test_fifty_calls_at_the_end_of_a_token_are_one_renewal(autojump_clock: object) -> None:
    async with kept() as far:
        await far.logged_in()
        await trio.sleep(LIFE_S + 1)
        assert await all_of(50, far.keeper.token) == ["a2"] * 50
        assert far.issuer.asked == 1


@pytest.mark.case("H25")
async def test_fifty_refusals_are_one_renewal(autojump_clock: object) -> None:
    async with kept() as far:
        await far.logged_in()
        denials = await all_of(50, partial(far.keeper.on_refused, "a1", 401, []))
        assert {denial.token for denial in denials} == {"a2"}
        assert (await far.keeper.on_refused("a1", 401, [])).token == "a2"  # it was late
        assert far.issuer.asked == 1


async def test_a_renewal_goes_on_when_who_waits_for_it_goes_away(autojump_clock: object) -> None:
    async with kept() as far:
        await far.logged_in()
        with trio.move_on_after(0.5):
            await far.keeper.on_refused("a1", 401, [])
        await trio.sleep(5)
        assert await far.keeper.token() == "a2"
        assert far.issuer.asked == 1


async def test_a_new_token_that_is_refused_is_not_renewed_again(autojump_clock: object) -> None:
    async with kept() as far:
        await far.logged_in()
        assert (await far.keeper.on_refused("a1", 401, [])).token == "a2"
        for _ in range(3):
            denial = await far.keeper.on_refused("a2", 401, [])
            assert (denial.token, denial.login) == ("", True)
            assert "does not take" in denial.reason
        assert far.issuer.asked == 1
        far.keeper.on_accepted("a1")
        far.keeper.on_accepted("a2")  # a hiccup of the server: it is good after all
        assert (await far.keeper.on_refused("a2", 401, [])).token == "a3"


async def test_a_refused_renewal_ends_the_login_and_not_who_we_are(autojump_clock: object) -> None:
    async with kept() as far:
        await far.logged_in()
        far.issuer.trouble = IssuerRefused("it refused (invalid_grant, HTTP 400)", "invalid_grant")
        denials = await all_of(50, partial(far.keeper.on_refused, "a1", 401, []))
        assert {(denial.token, denial.login) for denial in denials} == {("", True)}
        assert "invalid_grant" in denials[0].reason
        assert far.saved[-1] == replace(GRANT, tokens=None)
        assert await far.keeper.token() == ""
        assert (await far.keeper.on_refused("", 401, [])).login
        assert far.issuer.asked == 1


async def test_a_client_that_is_not_known_any_more_is_forgotten(autojump_clock: object) -> None:
    async with kept() as far:
        await far.logged_in()
        far.issuer.trouble = IssuerRefused("no", "invalid_client")
        assert not (await far.keeper.on_refused("a1", 401, [])).token
        assert far.keeper.grant is None
        assert far.saved[-1] is None


async def test_trouble_on_the_way_ends_nothing_and_is_not_repeated_at_once(autojump_clock: object) -> None:
    async with kept() as far:
        await far.logged_in()
        far.issuer.trouble = Unreached("nobody answers")
        with pytest.raises(NoToken, match="nobody answers"):
            await far.keeper.on_refused("a1", 401, [])
        with pytest.raises(NoToken, match="cannot be renewed now"):
            await far.keeper.on_refused("a1", 401, [])
        assert far.issuer.asked == 1
        far.issuer.trouble = None
        await trio.sleep(AGAIN_S)
        assert (await far.keeper.on_refused("a1", 401, [])).token == "a2"


async def test_an_outage_ahead_of_the_end_costs_nobody_anything(autojump_clock: object) -> None:
    async with kept() as far:
        await far.logged_in()
        far.issuer.trouble = Unreached("nobody answers")
        await trio.sleep(LIFE_S - 30)
        for _ in range(20):
            assert await far.keeper.token() == "a1"
            await trio.sleep(1)
        assert far.issuer.asked < 6
        await trio.sleep(20)
        with pytest.raises(NoToken):
            await far.keeper.token()


async def test_an_answer_that_is_no_token_is_no_end_either(autojump_clock: object) -> None:
    async with kept() as far:
        await far.logged_in()
        far.issuer.trouble = OAuthTrouble("that is no token")
        denial = await far.keeper.on_refused("a1", 401, [])
        assert (denial.token, denial.login) == ("", True)
        assert far.keeper.tokens is not None


async def test_without_a_refresh_token_the_end_is_the_end(autojump_clock: object) -> None:
    async with kept() as far:
        await far.keeper.take(replace(GRANT, tokens=Tokens(access="only", expires_at=trio.current_time() + 10)))
        await trio.sleep(20)
        assert await far.keeper.token() == "only"  # the server knows best
        denial = await far.keeper.on_refused("only", 401, [])
        assert denial.login
        assert "has ended" in denial.reason
        assert far.keeper.tokens is None


async def test_a_login_during_a_renewal_wins(autojump_clock: object) -> None:
    async with kept() as far, trio.open_nursery() as nursery:
        await far.logged_in()
        nursery.start_soon(far.keeper.on_refused, "a1", 401, [])
        await trio.sleep(0.5)
        await far.keeper.take(replace(GRANT, tokens=Tokens(access="new")))
        await trio.sleep(5)
        assert await far.keeper.token() == "new"
        assert far.saved[-1] == far.keeper.grant


async def test_more_rights_are_a_matter_of_the_user(autojump_clock: object) -> None:
    async with kept() as far:
        await far.logged_in()
        denial = await far.keeper.on_refused("a1", 403, MORE)
        assert (denial.token, denial.login) == ("", True)
        assert far.keeper.challenge.scope == ("write",)
        assert await far.keeper.token() == "a1"
        plain = await far.keeper.on_refused("a1", 403, [])
        assert not plain.login
        assert far.issuer.asked == 0


async def test_a_machine_logs_in_by_itself_and_asks_for_more_once(autojump_clock: object) -> None:
    async with kept(OAuthConfig(grant="client_credentials", client_id="x", client_secret="s")) as far:
        assert await far.keeper.token() == ""
        denials = await all_of(50, partial(far.keeper.on_refused, "", 401, []))
        assert {denial.token for denial in denials} == {"a1"}
        assert (await far.keeper.on_refused("a1", 403, MORE)).token == "a2"
        assert far.keeper.grant is not None
        assert far.keeper.grant.scope == ("read", "write")
        assert (await far.keeper.on_refused("a2", 403, MORE)).login
        await trio.sleep(LIFE_S + 1)
        assert await far.keeper.token() == "a3"
        assert far.issuer.asked == 3
        await far.keeper.drop()
        assert await far.keeper.token() == ""


async def test_a_machine_that_is_refused_says_why(autojump_clock: object) -> None:
    async with kept(OAuthConfig(grant="client_credentials", client_id="x", client_secret="s")) as far:
        far.issuer.trouble = IssuerRefused("it refused (invalid_client, HTTP 401)", "invalid_client")
        for _ in range(3):
            denial = await far.keeper.on_refused("", 401, [])
            assert denial.login
            assert "invalid_client" in denial.reason
        assert far.issuer.asked == 3


@pytest.mark.parametrize("set_s", [-7200.0, 7200.0])
async def test_a_renewal_that_failed_is_tried_again_in_time_wherever_the_clock_was_set(
    autojump_clock: object, set_s: float
) -> None:
    async with kept() as far:
        await far.logged_in()
        far.issuer.trouble = Unreached("it cannot be reached")
        with pytest.raises(NoToken):
            await far.keeper.on_refused("a1", 401, [])
        far.set_s, far.issuer.trouble = set_s, None
        with pytest.raises(NoToken, match=f"it is tried again in {AGAIN_S:g} s"):
            await far.keeper.on_refused("a1", 401, [])
        await trio.sleep(AGAIN_S - 1.5)
        with pytest.raises(NoToken, match="it is tried again in 2 s"):
            await far.keeper.on_refused("a1", 401, [])
        await trio.sleep(2)
        assert (await far.keeper.on_refused("a1", 401, [])).token == "a2"


@pytest.mark.case("D14")
@pytest.mark.parametrize("set_s", [-7200.0, 7200.0])
async def test_a_token_is_renewed_when_its_time_is_over_wherever_the_clock_was_set(
    autojump_clock: object, set_s: float
) -> None:
    async with kept() as far:
        await far.logged_in()
        far.set_s = set_s
        await trio.sleep(LIFE_S - 100)
        assert await far.keeper.token() == "a1"
        await trio.sleep(101)
        assert await far.keeper.token() == "a2"
        assert far.issuer.asked == 1


async def test_a_token_that_lives_for_five_seconds_is_not_renewed_at_every_call(autojump_clock: object) -> None:
    async with kept() as far:
        tokens = replace(await far.logged_in(), expires_at=trio.current_time() - 0.1 + 5)
        await far.keeper.take(replace(GRANT, tokens=tokens))
        for _ in range(20):
            assert await far.keeper.token() == "a1"
            await trio.sleep(0.1)
        assert far.issuer.asked == 0
        await trio.sleep(1)
        await far.keeper.token()
        await trio.sleep(2)
        assert far.issuer.asked == 1


async def test_a_machine_asks_anew_what_is_wanted_after_a_challenge_that_led_nowhere(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[Challenge] = []

    async def begin(grant: Grant | None, challenge: Challenge) -> Grant:
        wanted.append(challenge)
        await trio.lowlevel.checkpoint()
        if challenge.resource_metadata:
            raise OAuthTrouble("the metadata that it names cannot be read")
        return replace(GRANT, tokens=far.issuer.next())

    async with kept(OAuthConfig(grant="client_credentials", client_id="x")) as far:
        await far.logged_in()
        monkeypatch.setattr(far.issuer, "begin", begin)
        await far.keeper.on_refused("a1", 401, ['Bearer resource_metadata="https://a.example/broken"'])
        await trio.sleep(LIFE_S + 1)
        assert await far.keeper.token() == "a2"
        assert [bool(each.resource_metadata) for each in wanted] == [True, False]


SHARED = GrantSharing(haste=0.5, news_s=2.0)


async def test_a_node_that_is_not_the_first_renews_later(autojump_clock: object) -> None:
    async with kept() as far:
        tokens = await far.logged_in()
        far.keeper.sharing = SHARED
        await trio.sleep(LIFE_S - 0.9 * tokens.ahead_s)
        assert await far.keeper.token() == "a1"
        await trio.sleep(0.5 * tokens.ahead_s)
        assert far.issuer.asked == 0
        await far.keeper.token()
        await trio.sleep(2)
        assert await far.keeper.token() == "a2"


async def test_a_refusal_ends_no_login_that_another_node_renewed_meanwhile(autojump_clock: object) -> None:
    async with kept() as far, trio.open_nursery() as nursery:
        await far.logged_in()
        far.keeper.sharing = SHARED
        far.issuer.trouble = IssuerRefused("it refused (invalid_grant, HTTP 400)", "invalid_grant")
        theirs = replace(GRANT, tokens=Tokens(access="theirs", refresh="r", issued_at=trio.current_time()))

        async def hear() -> None:
            await trio.sleep(2.5)  # the issuer took one of them
            far.keeper.adopt(theirs)

        nursery.start_soon(hear)
        assert (await far.keeper.on_refused("a1", 401, ["Bearer"])).token == "theirs"
        assert far.keeper.grant == theirs
        assert [grant for grant in far.saved if grant is None or grant.tokens is None] == []


async def test_a_refusal_of_which_no_other_node_knows_better_ends_the_login(autojump_clock: object) -> None:
    async with kept() as far:
        await far.logged_in()
        far.keeper.sharing = SHARED
        far.issuer.trouble = IssuerRefused("it refused (invalid_grant, HTTP 400)", "invalid_grant")
        denial = await far.keeper.on_refused("a1", 401, ["Bearer"])
        assert (denial.token, denial.login) == ("", True)
