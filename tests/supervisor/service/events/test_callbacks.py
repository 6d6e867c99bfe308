"""What is posted to addresses that clients name: it is signed, and never goes where only we can reach."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from trio.testing import MockClock

from actors.principal import Principal
from actors.transport.http import addresses
from supervisor.events.event import key_of
from supervisor.service.events.callbacks import Callbacks, Receiver
from supervisor.service.events.limits import (
    MAX_POSTS,
    MAX_POSTS_OF_HOST,
    MAX_POSTS_OF_PRINCIPAL,
    VERIFY_S,
    CallbackUnusable,
    TooManyEvents,
    Undelivered,
)
from tests.fakes.webhook_receiver import WebhookReceiver, new_secret, statuses

CALLBACKS = "supervisor.service.events.callbacks"
REQUEST = "supervisor.service.events.callback_request"
SECRET, OLDER = new_secret(), new_secret(64)
ADA = Principal("user:ada")
BODY = b'{"eventId":"evt_1","data":{}}'


@pytest.fixture
async def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WebhookReceiver]:
    async with WebhookReceiver(tmp_path, names=("localhost", "hooks.example")).running() as running:
        monkeypatch.setenv("SSL_CERT_FILE", str(running.pem))
        yield running


def to(url: str, principal: Principal = ADA, *secrets: str) -> Receiver:
    return Receiver(principal, url, "sub_1", tuple(map(key_of, secrets or (SECRET,))))


def at(endpoint: WebhookReceiver, *secrets: str, path: str = "/hooks/1") -> Receiver:
    return to(endpoint.origin + path, ADA, *secrets)


def callbacks(*allowed: str) -> Callbacks:
    return Callbacks(lambda: allowed, time.time)


class Names(trio.abc.HostnameResolver):
    """Leads every name to the addresses of its turn; the last turn lasts."""

    def __init__(self, *turns: Sequence[str]) -> None:
        self.turns = list(turns)
        self.asked = 0

    async def getaddrinfo(self, host: Any, port: Any, *how: Any) -> Any:
        await trio.lowlevel.checkpoint()
        turn = self.turns[min(self.asked, len(self.turns) - 1)]
        self.asked += 1
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, int(port or 0))) for each in turn]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> Any:
        raise NotImplementedError


@contextmanager
def names(*turns: Sequence[str]) -> Any:
    resolver = Names(*turns)
    trio.socket.set_custom_hostname_resolver(resolver)
    try:
        yield resolver
    finally:
        trio.socket.set_custom_hostname_resolver(None)


async def refusal(posting: Callbacks, receiver: Receiver) -> Undelivered:
    with pytest.raises(Undelivered) as refused:
        await posting.deliver(receiver, "evt_1", BODY)
    return refused.value


async def test_what_is_posted_is_signed_by_each_secret_and_says_whose_it_is(endpoint: WebhookReceiver) -> None:
    await callbacks(endpoint.origin).deliver(at(endpoint, SECRET, OLDER), "evt_1", BODY)
    [posted] = endpoint.posted
    assert (posted.path, posted.text) == ("/hooks/1", BODY)
    assert posted.verified_by(SECRET)
    assert posted.verified_by(OLDER)
    assert not posted.verified_by(new_secret())
    assert posted.headers["webhook-id"] == "evt_1"
    assert posted.headers["x-mcp-subscription-id"] == "sub_1"
    assert posted.headers["content-type"] == "application/json"
    assert posted.headers["host"] == f"localhost:{endpoint.port}"
    assert not posted.headers.keys() & {"cookie", "authorization", "traceparent"}


@pytest.mark.parametrize(
    ("status", "reason", "final"),
    [
        *((307, "http_4xx", False), (400, "http_4xx", False), (410, "http_4xx", True), (413, "http_4xx", True)),
        *(
            (429, "http_4xx", False),
            (500, "http_5xx", False),
            (503, "http_5xx", False),
            (0, "connection_refused", False),
        ),
    ],
)
async def test_what_is_not_taken_has_its_category_and_nothing_else(
    endpoint: WebhookReceiver, status: int, reason: str, final: bool
) -> None:
    endpoint.status = statuses(then=status)
    endpoint.headers = {"location": f"{endpoint.origin}/elsewhere", "retry-after": "7"}
    refused = await refusal(callbacks(endpoint.origin), at(endpoint))
    assert (str(refused), refused.reason, refused.final) == (reason, reason, final)
    assert refused.retry_after_s == (7 if status else 0)
    assert [each.path for each in endpoint.posted] == ["/hooks/1"], "nowhere else, and once"


async def test_an_address_confirms_that_it_wants_what_is_posted(endpoint: WebhookReceiver) -> None:
    await callbacks(endpoint.origin).verify(at(endpoint))
    [posted] = endpoint.posted
    assert posted.body.keys() == {"type", "challenge"}
    assert posted.verified_by(SECRET)
    assert posted.headers["webhook-id"].startswith("msg_verification_")
    assert posted.headers["x-mcp-subscription-id"] == "sub_1"


@pytest.mark.parametrize(
    ("echo", "status"),
    [
        *((b"", 200), (b"{}", 200), (b'{"challenge":""}', 200), (b'{"challenge":"other"}', 200), (b"null", 200)),
        *((None, 404), (None, 500), (None, 302), (b'{"challenge":"' + b"x" * 100_000, 200), (b"\xff", 200)),
    ],
)
async def test_one_that_does_not_is_not_posted_to(endpoint: WebhookReceiver, echo: bytes | None, status: int) -> None:
    if echo is not None:
        endpoint.echo = lambda challenge: echo
    endpoint.verification_status = status
    with pytest.raises(CallbackUnusable) as refused:
        await callbacks(endpoint.origin).verify(at(endpoint))
    assert (refused.value.code, refused.value.details) == (-32027, {"reason": "challenge_failed"})
    assert "other" not in str(refused.value)


async def test_who_cannot_be_reached_is_told_apart_by_category_alone(
    endpoint: WebhookReceiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    posting = callbacks(endpoint.origin, "https://localhost:1", "https://unknown.invalid")
    for url, reason in (
        ("https://localhost:1/", "connection_refused"),
        ("https://unknown.invalid/", "connection_refused"),
        (f"https://127.0.0.2:{endpoint.port}/", "connection_refused"),
    ):
        with pytest.raises(CallbackUnusable) as refused:
            await posting.verify(to(url))
        assert refused.value.details == {"reason": reason}
    with names(["127.0.0.1"]):
        foreign = f"https://other.example:{endpoint.port}"
        assert (await refusal(callbacks(foreign), to(f"{foreign}/"))).reason == "tls_error"
        own = f"https://hooks.example:{endpoint.port}"
        await callbacks(own).deliver(to(f"{own}/"), "evt_1", BODY)
    assert [each.headers["host"] for each in endpoint.posted] == [f"hooks.example:{endpoint.port}"]


async def test_an_endpoint_that_says_nothing_is_given_up(endpoint: WebhookReceiver, autojump_clock: MockClock) -> None:
    async def never(*_: object) -> httpx2.Response:
        await trio.sleep_forever()
        raise AssertionError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(f"{REQUEST}.send_to", never)
        assert (await refusal(callbacks(endpoint.origin), at(endpoint))).reason == "timeout"


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254"),
        *(
            "[::ffff:127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::1]",
            "[fd00::1]",
            "[fe80::1]",
            "2130706433",
            "0x7f.1",
        ),
        *("100.64.0.1", "192.0.2.1", "224.0.0.1", "255.255.255.255", "[2001:db8::1]", "[::]", "0177.0.0.1"),
    ],
)
async def test_no_address_is_asked_that_is_not_out_in_the_world(endpoint: WebhookReceiver, host: str) -> None:
    refused = await refusal(callbacks("https://hooks.example"), to(f"https://{host}:{endpoint.port}/x"))
    assert refused.reason == "connection_refused"
    assert endpoint.posted == []


async def test_a_name_is_refused_if_any_of_its_addresses_is_not(endpoint: WebhookReceiver) -> None:
    receiver = to(f"https://hooks.example:{endpoint.port}/")
    for found in (["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["10.1.1.1"], []):
        with names(found):
            assert (await refusal(callbacks(), receiver)).reason == "connection_refused"
    assert endpoint.posted == []


async def test_a_name_that_leads_elsewhere_later_is_looked_up_for_each_message_and_once(
    endpoint: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_one(address: str) -> addresses.Where:
        return "public" if address == "127.0.0.1" else addresses.where(address)

    monkeypatch.setattr(f"{REQUEST}.where", only_one)
    receiver = to(f"https://hooks.example:{endpoint.port}/")
    led: list[str] = []

    async def elsewhere(stream: trio.SocketStream) -> None:
        led.append(str(stream.socket.getpeername()))
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        await nursery.start(
            trio.serve_listeners, elsewhere, await trio.open_tcp_listeners(endpoint.port, host="127.0.0.2")
        )
        posting = callbacks()
        with names(["127.0.0.1"], ["127.0.0.2"]) as resolver:
            await posting.verify(receiver)
            assert resolver.asked == 1, "what is connected to is what was checked"
            assert (await refusal(posting, receiver)).reason == "connection_refused"
            assert resolver.asked == 2
        nursery.cancel_scope.cancel()
    assert ([each.type for each in endpoint.posted], led) == (["verification"], [])


async def test_no_proxy_of_the_environment_comes_in_between(
    endpoint: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    await callbacks(endpoint.origin).deliver(at(endpoint), "evt_1", BODY)
    assert endpoint.events == ["evt_1"]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have every message be posted for a second; the hosts of those that are posted now."""
    posted: list[str] = []

    async def send(client: object, verb: str, url: httpx2.URL, *rest: object) -> httpx2.Response:
        posted.append(url.host)
        try:
            await trio.sleep(1)
        finally:
            posted.remove(url.host)
        return httpx2.Response(204)

    async def public(host: str) -> list[str]:
        return ["93.184.216.34"]

    monkeypatch.setattr(f"{REQUEST}.send_to", send)

    nothing_trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    async def trusted(url: str) -> ssl.SSLContext:
        return nothing_trusted

    monkeypatch.setattr(f"{REQUEST}.look_up", public)
    monkeypatch.setattr(f"{REQUEST}.context_for", trusted)
    return posted


async def test_messages_are_posted_at_a_time_in_bounds(slow: list[str], autojump_clock: MockClock) -> None:
    posting, most = callbacks(), [0, 0, 0]
    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(posting.deliver, to("https://one.example/"), str(number), BODY)
        await trio.sleep(0.5)
        most[0] = len(slow)
        nursery.cancel_scope.cancel()
    async with trio.open_nursery() as nursery:
        for number in range(40):
            nursery.start_soon(posting.deliver, to(f"https://h{number}.example/"), str(number), BODY)
        await trio.sleep(0.5)
        most[1] = len(slow)
        for number in range(200):
            nursery.start_soon(
                posting.deliver, to(f"https://p{number}.example/", Principal(f"user:{number}")), "1", BODY
            )
        await trio.sleep(0.4)
        most[2] = len(slow)
    assert most == [MAX_POSTS_OF_HOST, MAX_POSTS_OF_PRINCIPAL, MAX_POSTS]
    assert posting._of_hosts._used == posting._of_principals._used == {}


async def test_nobody_waits_for_long_until_an_address_is_asked(slow: list[str], autojump_clock: MockClock) -> None:
    posting, url = callbacks(), "https://one.example/"
    async with trio.open_nursery() as nursery:
        for number in range(2 * MAX_POSTS_OF_HOST * int(VERIFY_S)):
            nursery.start_soon(posting.deliver, to(url, Principal(f"user:{number}")), str(number), BODY)
        await trio.sleep(0.5)
        began = trio.current_time()
        with pytest.raises(TooManyEvents) as refused:
            await posting.verify(to(url))
        assert refused.value.details == {"limit": "posts"}
        assert trio.current_time() - began == pytest.approx(VERIFY_S)
        nursery.cancel_scope.cancel()


async def test_addresses_of_one_host_or_one_principal_are_verified_at_a_pace(
    slow: list[str], autojump_clock: MockClock
) -> None:
    posting = callbacks()

    async def tried(url: str, principal: str) -> bool:
        try:
            await posting.verify(to(url, Principal(principal)))
        except TooManyEvents as refused:
            return refused.details not in [{"limit": "verifications", "max": most} for most in (10, 20)]
        except CallbackUnusable:
            return True
        raise AssertionError

    at_once = [await tried("https://victim.example/", f"user:{number}") for number in range(40)]
    assert at_once.count(True) in range(20, 35), "twenty, and those of the time that passes"
    await trio.sleep(60)
    of_one = [await tried(f"https://w{number}.victim.example/", "user:eve") for number in range(20)]
    assert of_one.count(True) in range(10, 15)


def test_a_receiver_shows_no_key() -> None:
    assert repr(to("https://a.example/")) == "Receiver(...)"
