"""The way to a server behind HTTP: TLS, proxies and certificates that the environment names, and time to connect."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import httpx2
import pytest
import trio

from actors.errors import SupervisorError
from actors.kit.nursery import background
from actors.life.policy import RestartPolicy
from actors.transport.http.client.verdict import trusted_certificates
from actors.transport.http.remote import HttpLimits, Remote
from actors.transport.http.transport import HttpTransport
from tests.actors.server.rig import Rig
from tests.actors.transport import behind
from tests.fakes import http_faults as faults
from tests.fakes.certificates import SINCE, certificate
from tests.fakes.mcp_server import FakeServer
from tests.fakes.remote_server import RemoteServer

ONCE = RestartPolicy(max_restarts=0, backoff_initial_s=10.0)
"""What cannot be reached is tried once more after so long that a call is not worth keeping."""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def before(url: str, **limits: float) -> AbstractAsyncContextManager[Rig]:
    bounds = HttpLimits(**{"connect_timeout_s": 5.0, "stop_s": 0.5, **limits})  # type: ignore[arg-type]
    return behind.before(HttpTransport(Remote(url=url, headers=behind.CREDENTIAL), bounds), era="legacy", policy=ONCE)


@asynccontextmanager
async def listening(handler: Callable[[trio.SocketStream], Awaitable[object]]) -> AsyncIterator[int]:
    """Serve connections for the block, on the port."""
    async with background() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        await nursery.start(trio.serve_listeners, handler, [listener])
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def refused(url: str, **limits: float) -> str:
    """Return why a server cannot be reached."""
    async with before(url, **limits) as rig:
        with pytest.raises(SupervisorError) as raised:
            await rig.call("echo", deadline_s=10)
        assert raised.value.outcome == "not_sent"
        return (await rig.status()).last_error or ""


async def test_a_certificate_that_the_environment_names_is_trusted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pem, context = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    fake = FakeServer()
    async with RemoteServer(fake.serve, tls=context).running() as server, before(server.url) as rig:
        assert await rig.call("echo", n=1) == {"n": 1}
    assert server.url.startswith("https:")


@pytest.mark.case("H02")
async def test_no_certificate_is_trusted_that_is_not_named(tmp_path: Path) -> None:
    _, context = certificate(tmp_path)
    async with RemoteServer(FakeServer().serve, tls=context).running() as server:
        assert "its certificate is not trusted" in await refused(server.url)
    assert server.requests == []


@pytest.mark.case("H02")
async def test_one_that_has_expired_is_not_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pem, context = certificate(tmp_path, until=SINCE + datetime.timedelta(days=1))
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    async with RemoteServer(FakeServer().serve, tls=context).running() as server:
        assert "its certificate is not trusted: certificate has expired" in await refused(server.url)


@pytest.mark.case("H02")
async def test_one_for_another_host_is_not_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pem, context = certificate(tmp_path, host="127.0.0.2")
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    async with RemoteServer(FakeServer().serve, tls=context).running() as server:
        assert "its certificate is not trusted: IP address mismatch" in await refused(server.url)
    assert server.requests == []


@pytest.mark.case("H02")
async def test_tls_is_not_given_up_where_nobody_speaks_it() -> None:
    async def plain(stream: trio.SocketStream) -> None:
        await stream.receive_some(1000)
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        await stream.receive_some(1000)

    async with listening(plain) as port:
        why = await refused(f"https://127.0.0.1:{port}/mcp")
    assert why == "it cannot be reached (it does not speak TLS as we do)"


async def test_certificates_are_read_once_for_all_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []

    def read() -> object:
        reads.append(1)
        return object()

    monkeypatch.setattr(httpx2, "create_ssl_context", read)
    found: list[object] = []

    async def ask() -> None:
        found.append(await trusted_certificates())

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(ask)
    assert len(reads) == 1
    assert len(set(map(id, found))) == 1


@pytest.mark.case("H01")
async def test_who_does_not_finish_connecting_is_given_up_after_connect_timeout_s() -> None:
    async def silent(stream: trio.SocketStream) -> None:
        while await stream.receive_some(1000):
            pass

    async with listening(silent) as port:
        why = await refused(f"https://127.0.0.1:{port}/mcp", connect_timeout_s=0.1)
    assert why == "it cannot be reached (no connection within connect_timeout_s)"


async def test_a_proxy_that_the_environment_names_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeServer()
    async with RemoteServer(fake.serve).running() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/mcp"))
        async with before("http://mcp.invalid/mcp") as rig:
            assert await rig.call("echo", n=1) == {"n": 1}
            proxy.faults["tools/call"] = faults.status(307, location="http://other.invalid/mcp")
            with pytest.raises(SupervisorError, match="sends us on"):
                await rig.call("echo")
    assert {request.path for request in proxy.requests} == {"http://mcp.invalid/mcp"}
    assert {request.headers["host"] for request in proxy.requests} == {"mcp.invalid"}


@pytest.mark.case("H07")
async def test_a_proxy_on_the_way_to_https_gets_no_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    async with RemoteServer(FakeServer().serve, faults={"CONNECT": faults.status(502)}).running() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.removesuffix("/mcp"))
        assert "cannot be reached" in await refused("https://mcp.invalid/mcp")
    assert {request.path for request in proxy.requests} == {"mcp.invalid:443"}
    assert all("authorization" not in request.headers for request in proxy.requests)


UNUSABLE = ["socks5://127.0.0.1:9", "gopher://127.0.0.1:9", "::nothing::"]


@pytest.mark.parametrize("address", UNUSABLE)
@pytest.mark.parametrize("variable", ["ALL_PROXY", "https_proxy"])
async def test_a_proxy_that_cannot_be_used_is_named_as_the_reason(
    variable: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, address)
    assert f"{variable} in the environment of the daemon names" in await refused("https://mcp.invalid/mcp")


async def test_a_server_on_this_machine_is_asked_directly_whatever_the_proxy_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", UNUSABLE[0])
    async with RemoteServer(FakeServer().serve).running() as server, before(server.url) as rig:
        assert await rig.call("echo", n=1) == {"n": 1}


async def test_a_proxy_that_is_not_there_is_named_as_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    await listeners[0].aclose()
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:sk-secret@127.0.0.1:{port}")
    why = await refused("https://mcp.invalid/mcp")
    assert why == "it cannot be reached (Connection refused), through the proxy that HTTPS_PROXY names"


@pytest.mark.parametrize(("scheme", "status"), [("https", 407), ("https", 502), ("http", 407), ("http", 504)])
async def test_what_a_proxy_refuses_is_said_with_its_variable(
    scheme: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = faults.status(status)
    async with RemoteServer(FakeServer().serve, faults={"CONNECT": fault, "POST": fault}).running() as proxy:
        monkeypatch.setenv("ALL_PROXY", proxy.url.removesuffix("/mcp"))
        why = await refused(f"{scheme}://mcp.invalid/mcp")
    assert "through the proxy that ALL_PROXY names" in why
    assert f"HTTP {status}" in why


@pytest.mark.parametrize(("there", "reason"), [(True, "no certificate in it"), (False, "No such file or directory")])
async def test_certificates_that_cannot_be_read_are_named_by_their_variable(
    there: bool, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.pem"
    if there:
        wrong.write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(wrong))
    why = await refused("https://127.0.0.1:9/mcp")
    assert f"cannot be read from what SSL_CERT_FILE names in the environment: {reason}" in why


@pytest.mark.parametrize("url", ["http://\U0001f600.example/mcp", "http://256.1.1.1/mcp"])
async def test_what_is_no_address_is_a_reason_and_no_crash(url: str) -> None:
    assert await refused(url) == 'what is at "url" is no address'


@pytest.mark.parametrize("value", ["\U0001f600", "a\nb"])
async def test_a_header_that_cannot_be_written_is_a_reason_and_no_crash(value: str) -> None:
    server = RemoteServer(FakeServer().serve)
    async with behind.behind(server, headers={"a": value}, era="legacy", policy=ONCE) as rig:
        with pytest.raises(SupervisorError):
            await rig.call("echo", deadline_s=10)
        assert 'look at its "headers"' in ((await rig.status()).last_error or "")
    assert server.requests == []
