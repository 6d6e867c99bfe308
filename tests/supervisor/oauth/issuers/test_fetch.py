"""Who cannot be asked is told apart from who must not be, and a proxy of the environment is used."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import trio

from supervisor.oauth.issuers.fetch import Fetcher
from supervisor.oauth.issuers.metadata import OAuthTrouble, Unreached
from tests.fakes.issuer_server import MCP, IssuerServer, Reply


async def closed_port() -> int:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port: int = listeners[0].socket.getsockname()[1]
    await listeners[0].aclose()
    return port


async def test_nobody_there_is_an_outage() -> None:
    base = f"http://127.0.0.1:{await closed_port()}"
    with pytest.raises(Unreached, match="cannot be reached"):
        await Fetcher(f"{base}/mcp").get(f"{base}/x")


async def test_a_name_that_nobody_knows_is_an_outage() -> None:
    with pytest.raises(Unreached, match="cannot be looked up"):
        await Fetcher("https://nowhere.invalid/mcp").get("https://nowhere.invalid/x")


async def test_what_a_proxy_reaches_is_asked_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async with IssuerServer().running() as proxy:
        monkeypatch.setenv("http_proxy", proxy.base)
        monkeypatch.setenv("no_proxy", "")
        proxy.pages["http://far.internal/mcp"] = Reply(status=401, headers={"www-authenticate": "Bearer scope=x"})
        challenges = (
            await Fetcher("http://far.internal/mcp").post("http://far.internal/mcp", {}, b"{}", limit=0)
        ).challenges
        assert challenges == ("Bearer scope=x",)
        assert proxy.asked("http://far.internal/mcp")[0].headers["host"] == "far.internal"
        assert not proxy.asked(MCP)


@pytest.mark.case("H08")
@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "0177.0.0.1", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]"])
async def test_no_spelling_of_an_address_of_this_machine_is_asked(host: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(OAuthTrouble, match=r"private network|no plain https address"):
        await Fetcher("https://10.0.0.1/mcp").get(f"https://{host}/x")
    assert caplog.messages == []


class Fickle(trio.abc.HostnameResolver):
    """Leads each name to one address at first, and to another one ever after."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked: list[str] = []

    async def getaddrinfo(self, host: Any, port: Any, *how: Any) -> Any:
        await trio.lowlevel.checkpoint()
        self.asked.append(host := host if isinstance(host, str) else host.decode())
        address = self.addresses[self.asked.count(host) > 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, int(port or 0)))]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> Any:
        raise NotImplementedError


@pytest.mark.case("H08")
async def test_a_name_that_leads_elsewhere_when_it_is_looked_up_again_is_asked_where_it_was_checked() -> None:
    led: list[str] = []

    async def elsewhere(stream: trio.SocketStream) -> None:
        led.append(str(stream.socket.getpeername()))
        await stream.aclose()

    names = Fickle("127.0.0.1", "127.0.0.2")
    async with IssuerServer().running() as issuer, trio.open_nursery() as nursery:
        port = int(issuer.base.rpartition(":")[2])
        await nursery.start(trio.serve_listeners, elsewhere, await trio.open_tcp_listeners(port, host="127.0.0.2"))
        issuer.pages["/x"] = Reply({"here": True})
        trio.socket.set_custom_hostname_resolver(names)
        try:
            page = await Fetcher(f"http://a.localhost:{port}/mcp").get(f"http://b.localhost:{port}/x")
        finally:
            trio.socket.set_custom_hostname_resolver(None)
        assert page.body == b'{"here": true}'
        nursery.cancel_scope.cancel()
    assert (sorted(names.asked), led) == (["a.localhost", "b.localhost"], [])


async def test_an_answer_that_never_comes_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr("supervisor.oauth.issuers.fetch.DEADLINE_S", 0.2)
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        await nursery.start(trio.serve_listeners, silent, listeners)
        base = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        for question in (
            Fetcher(base).get(base),
            Fetcher(base).post(base, {}, b""),
            Fetcher(base).post(base, {}, b"", limit=0),
        ):
            with pytest.raises(Unreached, match=r"cannot be reached|no answer within"):
                await question
        nursery.cancel_scope.cancel()


async def test_a_document_that_moves_to_what_is_no_address_is_trouble_and_no_crash() -> None:
    async with IssuerServer().running() as issuer:
        for place in ("http://[::bad", "http://[", "\x01"):
            issuer.pages["/x"] = Reply(status=302, headers={"location": place})
            with pytest.raises(OAuthTrouble):
                await Fetcher(f"{issuer.base}/mcp").get(f"{issuer.base}/x")


@pytest.mark.parametrize("name", ["whole", "check_addresses", "send_to", "_page"])
async def test_whatever_reading_raises_is_trouble_and_no_crash(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: object) -> None:
        raise ZeroDivisionError("sk-secret")

    async with IssuerServer().running() as issuer:
        monkeypatch.setattr(f"supervisor.oauth.issuers.fetch.{name}", raising)
        with pytest.raises(Unreached, match=r"cannot be read \(ZeroDivisionError\)"):
            await Fetcher(f"{issuer.base}/mcp").get(f"{issuer.base}/x")


async def test_a_proxy_that_cannot_be_used_is_named_as_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:9")
    with pytest.raises(Unreached, match="all_proxy in the environment of the daemon names a SOCKS proxy"):
        await Fetcher("http://far.internal/mcp").get("http://far.internal/x")


async def test_a_proxy_that_is_not_there_is_named_as_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{await closed_port()}")
    with pytest.raises(Unreached, match="through the proxy that http_proxy names"):
        await Fetcher("http://far.internal/mcp").get("http://far.internal/x")
