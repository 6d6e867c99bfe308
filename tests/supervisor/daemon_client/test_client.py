"""The client of the commands: which certificates of a daemon it trusts."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import trio

from supervisor.daemon_client.client import DaemonUnreachable, connect
from supervisor.operations import STATUS
from tests.fakes.certificates import certificate

ANSWER = b'HTTP/1.1 200 OK\r\ncontent-length: 17\r\nconnection: close\r\n\r\n{"servers": []}  '


async def answer(stream: trio.abc.Stream) -> None:
    while b"\r\n\r\n" not in await stream.receive_some(65536):
        pass
    await stream.send_all(ANSWER)


@pytest.mark.parametrize("trusted", ["certificate.pem", None, "no such file"])
async def test_a_daemon_with_tls_is_asked_where_its_certificate_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: str | None
) -> None:
    _, context = certificate(tmp_path)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    if trusted is not None:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / trusted))
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            listen = partial(trio.serve_ssl_over_tcp, host="127.0.0.1")
            (listener,) = await nursery.start(listen, answer, 0, context)
            url = f"https://127.0.0.1:{listener.transport_listener.socket.getsockname()[1]}"
            if trusted == "certificate.pem":
                async with connect(url) as daemon:
                    assert await daemon.perform(STATUS) == {"servers": []}
            else:
                says = (
                    "name its file in SSL_CERT_FILE"
                    if trusted is None
                    else "cannot be read from what SSL_CERT_FILE names"
                )
                with pytest.raises(DaemonUnreachable, match=says):
                    async with connect(url) as daemon:
                        await daemon.perform(STATUS)
            nursery.cancel_scope.cancel()
