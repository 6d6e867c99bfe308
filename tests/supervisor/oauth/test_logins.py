"""Logins under way: found once, bounded in time and number, and only by who comes from the issuer."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from msgspec.structs import replace

from actors.errors import InvalidArguments
from actors.principal import LOCAL
from supervisor.identity.people import OPERATOR, Person
from supervisor.oauth.issuers.issuer import Grant, OAuthClient
from supervisor.oauth.issuers.metadata import IssuerMetadata, OAuthTrouble
from supervisor.oauth.logins import ALPHABET, EXPIRY_S, MAX_KEPT, MAX_OPEN, MAX_TRIES, Login, Logins, check_answer
from supervisor.oauth.port import CallbackQuery, callback_uri
from tests.fakes.kept_audit import KeptAudit

ANA, BEN = Person(user="ana"), Person(user="ben")
ISSUER = IssuerMetadata(issuer="https://b.example")
GRANT = Grant(server="s", issuer=ISSUER, resource="r", client=OAuthClient(id="x"))


def login_at(server: str, asker: Person = OPERATOR, grant: Grant = GRANT, **more: Any) -> Login:
    return Login(server=server, account=(asker.principal, server), asker=asker, grant=grant, **more)


async def test_a_login_is_found_once_by_its_state_and_often_by_its_number(autojump_clock: object) -> None:
    logins = Logins()
    login = logins.begin(login_at("far"))
    state = login.state
    assert len({state, login.number, login.verifier}) == 3
    assert logins.take(login.number) is None
    assert logins.take("") is None
    assert logins.take(state) is login
    assert logins.take(state) is None
    assert logins.find(login.number, LOCAL) is login
    assert state not in repr(login)
    login.end("done", "far: logged in")
    login.end("failed", "no")
    assert (login.outcome, login.message, login.verifier) == ("done", "far: logged in", "")


async def test_a_login_has_ten_minutes(autojump_clock: object) -> None:
    logins = Logins()
    login = logins.begin(login_at("far"))
    state = login.state
    await trio.sleep(EXPIRY_S)
    assert logins.take(state) is None
    assert login.status().state == "failed"
    assert "ten minutes" in login.message


async def test_a_second_login_of_an_account_ends_the_first(autojump_clock: object) -> None:
    logins = Logins()
    first, other = logins.begin(login_at("far", ANA)), logins.begin(login_at("far", BEN))
    second = logins.begin(login_at("far", ANA))
    assert (first.outcome, other.outcome, second.outcome) == ("failed", "pending", "pending")
    assert "another login was begun" in first.message


async def test_whoever_has_many_logins_under_way_leaves_as_many_for_others(autojump_clock: object) -> None:
    logins = Logins()
    for number in range(MAX_OPEN // 2):
        logins.begin(login_at(f"server {number}", ANA))
    with pytest.raises(OAuthTrouble, match="too many"):
        logins.begin(login_at("one more", ANA))
    for number in range(MAX_OPEN // 4):
        logins.begin(login_at(f"server {number}", BEN))
    with pytest.raises(OAuthTrouble, match="too many"):
        logins.begin(login_at("one more", BEN))
    await trio.sleep(EXPIRY_S)
    logins.begin(login_at("one more", ANA))


async def test_whoever_begins_many_logins_ends_and_hides_none_of_another(autojump_clock: object) -> None:
    logins = Logins()
    waiting, over = logins.begin(login_at("far", BEN)), logins.begin(login_at("near", BEN))
    logins.finish(over)
    first = logins.begin(login_at("far", ANA))
    for _ in range(MAX_KEPT):
        newest = logins.begin(login_at("far", ANA))
    assert [waiting.outcome, newest.outcome] == ["pending", "pending"]
    assert logins.find(first.number, ANA.principal) is None
    assert logins.find(newest.number, ANA.principal) is newest
    assert logins.find(over.number, BEN.principal) is over


async def test_a_login_is_told_of_to_nobody_but_who_began_it(autojump_clock: object) -> None:
    logins = Logins()
    login = logins.begin(login_at("far", ANA))
    of_team = replace(ANA, team="core")
    assert [logins.find(login.number, each.principal) for each in (BEN, OPERATOR, of_team)] == [None] * 3


@pytest.mark.parametrize(
    ("advertised", "iss", "error", "said"),
    [
        (None, None, "", ""),
        (None, "https://b.example", "", ""),
        (True, "https://b.example", "", ""),
        (True, None, "", "does not say"),
        (None, "https://b.example/", "", "comes from another"),
        (True, "https://evil.example", "access_denied", "comes from another"),
        (None, None, "access_denied", "access_denied"),
        (None, None, "<b>secret</b>", "an error of its own"),
    ],
)
async def test_who_does_not_come_from_the_issuer_has_nothing_to_say(
    advertised: bool | None, iss: str | None, error: str, said: str
) -> None:
    issuer = replace(ISSUER, authorization_response_iss_parameter_supported=advertised)
    login = Logins().begin(login_at("far", grant=replace(GRANT, issuer=issuer)))
    query = CallbackQuery(state=login.state, code="c", iss=iss, error=error)
    if not said:
        assert check_answer(login, query) == "c"
        with pytest.raises(OAuthTrouble, match="no code"):
            check_answer(login, replace(query, code=""))
        return
    with pytest.raises(OAuthTrouble, match=said) as raised:
        check_answer(login, query)
    assert "secret" not in raised.value.reason


BROUGHT = "http://127.0.0.1:1/oauth/callback?code=c&state={}"


async def asked(logins: Logins) -> tuple[Login, str]:
    """Return a login whose browser came back, and the code that it shows."""
    login = logins.begin(login_at("far", ANA, confirms=True))
    assert logins.take(login.state) is login
    return login, logins.ask_confirmation(login, "c").code


async def test_a_code_is_taken_as_people_write_it_and_is_another_one_each_time(autojump_clock: object) -> None:
    logins = Logins()
    shown = set()
    for write in (str, str.lower, lambda code: code.replace("-", ""), lambda code: f" {code.replace('-', ' ')} \n"):
        login, code = await asked(logins)
        assert code[4] == "-"
        assert set(code) - {"-"} <= set(ALPHABET)
        assert code not in repr(login)
        assert logins.redeem(login, write(code)) == "c"
        assert not login.is_open
        shown.add(code)
    assert len(shown) == 4


async def test_a_wrong_code_may_be_given_a_few_times(autojump_clock: object) -> None:
    kept = KeptAudit()
    logins = Logins(kept)
    login, code = await asked(logins)
    for wrong in ("", "\u0130\ud800", code[:-1], f"{code}A"):
        with pytest.raises(InvalidArguments, match="not the code"):
            logins.redeem(login, wrong)
    with pytest.raises(OAuthTrouble, match=f"wrong {MAX_TRIES} times"):
        logins.redeem(login, BROUGHT.format("x"))
    assert kept.notes == [("login.answer", "far", "refused", "of the user ana")] * MAX_TRIES


async def test_a_right_code_after_a_wrong_one_does(autojump_clock: object) -> None:
    logins = Logins()
    login, code = await asked(logins)
    with pytest.raises(InvalidArguments, match="4 times more"):
        logins.redeem(login, "AAAA-AAAA")
    assert logins.redeem(login, code) == "c"


async def test_a_login_waits_for_its_code_no_longer_than_for_its_browser(autojump_clock: object) -> None:
    logins = Logins()
    login, _ = await asked(logins)
    assert login.status().message == "far: waiting for the code that the browser shows"
    await trio.sleep(EXPIRY_S)
    found = logins.find(login.number, ANA.principal)
    assert found is login
    assert (login.outcome, login.code, login.confirmation, login.state) == ("failed", "", "", "")


async def test_what_goes_on_to_its_tokens_does_not_expire_meanwhile(autojump_clock: object) -> None:
    logins = Logins()
    login, code = await asked(logins)
    logins.redeem(login, code)
    await trio.sleep(EXPIRY_S)
    logins.find(login.number, ANA.principal)
    assert login.outcome == "pending"
    logins.finish(login)
    assert login.status().state == "done"


@pytest.mark.parametrize("confirms", [True, False])
@pytest.mark.parametrize("returned", [True, False])
async def test_the_address_of_this_very_login_needs_no_code(
    autojump_clock: object, confirms: bool, returned: bool
) -> None:
    logins = Logins()
    login, other = logins.begin(login_at("far", confirms=confirms)), logins.begin(login_at("near"))
    if returned:
        logins.take(login.state)
    for address in (BROUGHT.format(other.state), BROUGHT.format(f"{login.state}&state=x"), "http://["):
        with pytest.raises(InvalidArguments, match="not the address") as raised:
            logins.redeem(login, address)
        assert other.state not in raised.value.message
    assert logins.redeem(login, BROUGHT.format(login.state)) == "c"


async def test_an_address_is_checked_as_what_a_browser_brings(autojump_clock: object) -> None:
    logins = Logins()
    login = logins.begin(login_at("far"))
    with pytest.raises(OAuthTrouble, match="another authorization server"):
        logins.redeem(login, BROUGHT.format(f"{login.state}&iss=https%3A%2F%2Fevil.example"))
    with pytest.raises(OAuthTrouble, match="access_denied"):
        logins.redeem(login, f"http://127.0.0.1/?error=access_denied&state={login.state}")


async def test_a_code_that_nobody_showed_is_none(autojump_clock: object) -> None:
    logins = Logins()
    waiting, alone = logins.begin(login_at("far", ANA, confirms=True)), logins.begin(login_at("far"))
    for login, said in ((waiting, "no browser has come back"), (alone, "paste the whole address")):
        with pytest.raises(InvalidArguments, match=said):
            logins.redeem(login, "")
        assert login.tries == MAX_TRIES


@pytest.mark.parametrize(
    ("host", "uri"),
    [
        ("127.0.0.1", "http://127.0.0.1:7/oauth/callback"),
        ("localhost", "http://127.0.0.1:7/oauth/callback"),
        ("0.0.0.0", "http://127.0.0.1:7/oauth/callback"),
        ("[::]", "http://[::1]:7/oauth/callback"),
        ("[::1]", "http://[::1]:7/oauth/callback"),
        ("192.168.1.5", "http://192.168.1.5:7/oauth/callback"),
    ],
)
def test_where_browsers_come_back_to(host: str, uri: str) -> None:
    assert callback_uri(host, 7) == uri
