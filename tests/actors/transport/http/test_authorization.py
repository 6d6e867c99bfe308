"""Tokens on requests: sent to the server alone, and once more with another one at most."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import httpx2
import pytest

from actors.transport.http.authorization import MAX_HIDDEN, AuthorizedClient, Denial, NoToken, denial_of
from actors.transport.http.client.verdict import of_error, of_status

URL = "https://a.example/mcp"
EACH_TIME = "another each time"


class Purse:
    """Has `given` to send, and `following` after a refusal."""

    def __init__(self, given: str = "", following: str = "") -> None:
        self.given = given
        self.following = following
        self.known: list[str] = []
        self.denied: list[tuple[str, int, list[str]]] = []
        self.empty = False

    async def token(self) -> str:
        if self.empty:
            raise NoToken("nobody gives one now")
        return self.given

    def on_accepted(self, token: str) -> None:
        self.known.append(token)

    async def on_refused(self, token: str, status: int, challenges: Sequence[str]) -> Denial:
        self.denied.append((token, status, list(challenges)))
        following = f"number {len(self.denied)}" if self.following == EACH_TIME else self.following
        return Denial(token=following, login=True, reason="log in")


class Server:
    """Takes one token; `tokens` is what it was shown."""

    def __init__(self, good: str, status: int = 401) -> None:
        self.tokens: list[str | None] = []
        self.bodies: list[bytes] = []
        self._good = good
        self._status = status

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.tokens.append(request.headers.get("authorization"))
        self.bodies.append(await request.aread())
        good = self.tokens[-1] == f"Bearer {self._good}"
        head = {} if good else {"www-authenticate": 'Bearer scope="x"'}
        return httpx2.Response(200 if good else self._status, headers=head, content=b"body")

    def client(self, purse: Purse | None) -> AuthorizedClient:
        return AuthorizedClient(purse, transport=httpx2.MockTransport(self.answer))


async def test_without_an_authorizer_nothing_is_added() -> None:
    server = Server("x")
    response = await server.client(None).post(URL, content=b"hello")
    assert (response.status_code, server.tokens, denial_of(response)) == (401, [None], None)


async def test_a_token_goes_with_each_request() -> None:
    server, purse = Server("one"), Purse("one")
    response = await server.client(purse).get(URL)
    assert (response.status_code, response.content) == (200, b"body")
    assert purse.known == ["one"]
    assert denial_of(response) is None


async def test_a_refused_request_is_sent_once_more_with_another_token() -> None:
    server, purse = Server("two"), Purse("one", "two")
    response = await server.client(purse).post(URL, content=b"hello")
    assert response.status_code == 200
    assert server.tokens == ["Bearer one", "Bearer two"]
    assert server.bodies == [b"hello", b"hello"]
    assert purse.denied == [("one", 401, ['Bearer scope="x"'])]
    assert purse.known == ["two"]


@pytest.mark.case("H03")
@pytest.mark.parametrize("following", ["", "one", "three", EACH_TIME])
async def test_it_is_never_sent_a_third_time(following: str) -> None:
    server, purse = Server("two"), Purse("one", following)
    async with server.client(purse).stream("POST", URL, content=b"hello") as response:
        assert response.status_code == 401
    assert len(server.tokens) == (2 if following in ("three", EACH_TIME) else 1)
    failure = of_status(b"1", 401, None, denial_of(response))
    assert (failure.cause, failure.login, failure.bars, failure.reason) == ("unauthorized", True, True, "log in")
    assert not failure.sent


async def test_more_rights_bar_nothing_else() -> None:
    server, purse = Server("two", 403), Purse("one")
    response = await server.client(purse).get(URL)
    failure = of_status(b"1", 403, None, denial_of(response))
    assert (failure.cause, failure.login, failure.bars) == ("forbidden", True, False)
    assert purse.known == ["one"]


async def test_where_no_token_can_be_had_nothing_is_sent() -> None:
    server, purse = Server("one"), Purse("one")
    purse.empty = True
    with pytest.raises(NoToken) as raised:
        await server.client(purse).get(URL)
    assert server.tokens == []
    failure = of_error(b"1", raised.value)
    assert (failure.cause, failure.reason, failure.sent) == ("unavailable", "nobody gives one now", False)


async def test_a_token_that_was_sent_is_taken_out_of_what_the_server_says() -> None:
    first, second = "first/token+of-a-login", "second.token.of.the.login"
    purse = Purse(first)
    client = Server(first).client(purse)
    assert client.without_tokens(first.encode()) == first.encode(), "it was not sent yet"
    await client.get(URL)
    purse.given = second
    await client.get(URL)
    said = f'{{"a":"Bearer {first}","b":"{second}"}}'.encode()
    for text in (said, said.replace(b"/", b"\\/")):
        assert client.without_tokens(text) == b'{"a":"Bearer ***","b":"***"}'
    assert client.without_tokens(base64.b64encode(second.encode()).rstrip(b"=")) == b"***"
    purse.given = "word"
    await client.get(URL)
    assert client.without_tokens(b"a word") == b"a word"
    for number in range(MAX_HIDDEN):
        purse.given = f"a token of later {number}"
        await client.get(URL)
    assert client.without_tokens(said) == said, "nobody remembers it any more"
