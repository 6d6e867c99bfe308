"""A real server in the place of an identity provider, which does its worst: it costs a request at most a few
seconds.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest
import trio

from actors.errors import ProviderUnavailable
from supervisor.identity.people import Introspection, Issuer
from supervisor.identity.requester import TokenRefused
from supervisor.oauth.bearer import verifier
from supervisor.oauth.bearer.verifier import IdentityProvider
from tests.fakes.identity_provider import NOW, signed

Answer = Callable[[trio.SocketStream, str], Awaitable[None]]


@asynccontextmanager
async def hostile(answer: Answer) -> AsyncIterator[IdentityProvider]:
    """A provider whose metadata are right, and that answers all else in its own way."""

    async def serve(stream: trio.SocketStream) -> None:
        asked = (await stream.receive_some(65536)).decode()
        if ".well-known" in asked:
            places = {name: f"{base}/{name}" for name in ("token_endpoint", "jwks_uri", "introspection_endpoint")}
            await send(stream, json.dumps({"issuer": base, **places}).encode())
        else:
            with suppress(trio.BrokenResourceError):  # nobody reads all of it
                await answer(stream, asked)

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        base = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        about = Introspection(client_id="a", client_secret="b")
        yield IdentityProvider(Issuer(issuer=base, introspection=about), nursery)
        nursery.cancel_scope.cancel()


async def send(stream: trio.SocketStream, body: bytes) -> None:
    await stream.send_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body) + body)


async def huge(stream: trio.SocketStream, asked: str) -> None:
    await send(stream, json.dumps({"keys": [{"kty": "RSA", "n": "A" * 1_000_000}]}).encode())


async def endless(stream: trio.SocketStream, asked: str) -> None:
    await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await stream.send_all(b" ")
        await trio.sleep(0.01)


async def silent(stream: trio.SocketStream, asked: str) -> None:
    await trio.sleep_forever()


async def rude(stream: trio.SocketStream, asked: str) -> None:
    await stream.aclose()


async def elsewhere(stream: trio.SocketStream, asked: str) -> None:
    await stream.send_all(b"HTTP/1.1 302 x\r\nlocation: http://169.254.169.254/keys\r\ncontent-length: 0\r\n\r\n")


@pytest.mark.parametrize("answer", [huge, endless, silent, rude, elsewhere])
async def test_whatever_it_answers_says_nothing_about_a_token(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "ANSWER_S", 0.3)
    async with hostile(answer) as provider:
        with trio.fail_after(20):
            for ask in (provider.check_with_new_keys, provider.introspect):
                with pytest.raises((ProviderUnavailable, TokenRefused)) as caught:
                    await ask(signed(iss=provider.issuer.issuer), NOW)
                if answer is not huge or ask == provider.check_with_new_keys:
                    assert isinstance(caught.value, ProviderUnavailable)
