"""Logins under way: found once, bounded in time and number, and only by who comes from the issuer."""

from __future__ import annotations

import pytest
import trio
from msgspec.structs import replace

from supervisor.oauth.issuers.grant import Grant, OAuthClient
from supervisor.oauth.issuers.metadata import IssuerMetadata
from supervisor.oauth.issuers.trouble import OAuthTrouble
from supervisor.oauth.logins import EXPIRY_S, MAX_KEPT, MAX_OPEN, Logins, check_answer
from supervisor.oauth.port import CallbackQuery, callback_uri

ISSUER = IssuerMetadata(issuer="https://b.example")
GRANT = Grant(server="s", issuer=ISSUER, resource="r", client=OAuthClient(id="x"))


async def test_a_login_is_found_once_by_its_state_and_often_by_its_number(autojump_clock: object) -> None:
    logins = Logins()
    login = logins.begin("far", GRANT)
    state = login.state
    assert len({state, login.number, login.verifier}) == 3
    assert logins.take(login.number) is None
    assert logins.take("") is None
    assert logins.take(state) is login
    assert logins.take(state) is None
    assert logins.find(login.number) is login
    assert state not in repr(login)
    login.end("done", "far: logged in")
    login.end("failed", "no")
    assert (login.outcome, login.message, login.verifier) == ("done", "far: logged in", "")


async def test_a_login_has_ten_minutes(autojump_clock: object) -> None:
    logins = Logins()
    login = logins.begin("far", GRANT)
    state = login.state
    await trio.sleep(EXPIRY_S)
    assert logins.take(state) is None
    assert login.status().state == "failed"
    assert "ten minutes" in login.message


async def test_a_second_login_ends_the_first_and_there_are_not_too_many(autojump_clock: object) -> None:
    logins = Logins()
    first, second = logins.begin("far", GRANT), logins.begin("far", GRANT)
    assert (first.outcome, second.outcome) == ("failed", "pending")
    for number in range(MAX_OPEN - 1):
        logins.begin(f"server {number}", GRANT)
    with pytest.raises(OAuthTrouble, match="too many"):
        logins.begin("one more", GRANT)
    for _ in range(MAX_KEPT + 1):
        newest = logins.begin("far", GRANT)
    assert logins.find(first.number) is None
    assert logins.find(newest.number) is newest


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
    login = Logins().begin("far", replace(GRANT, issuer=issuer))
    query = CallbackQuery(state=login.state, code="c", iss=iss, error=error)
    if not said:
        assert check_answer(login, query) == "c"
        with pytest.raises(OAuthTrouble, match="no code"):
            check_answer(login, replace(query, code=""))
        return
    with pytest.raises(OAuthTrouble, match=said) as raised:
        check_answer(login, query)
    assert "secret" not in raised.value.reason


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
