"""A full OAuth flow by the official Python clients: `python_oauth.py URL KIND LIFE_S` prints a report as JSON.

KIND is "mcp1" or "mcp2", the version of the SDK. Sign in, call; where LIFE_S is not 0, also wait until the token has
expired, call again, have the login taken back, and call once more: then it signs in again.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import AsyncExitStack
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
from mcp.client.auth import OAuthClientProvider
from mcp.client.session import ClientSession
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

REDIRECT = "http://127.0.0.1:9/callback"
"""Nobody listens there: where a browser is sent, the script stops."""
DEADLINE_S = 60.0


class Kept:
    """What a client keeps, and the browser of its user."""

    def __init__(self, http: Any) -> None:
        self.http = http
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None
        self.asked: list[str] = []
        self.answer: dict[str, str] = {}

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def sign_in(self, url: str) -> None:
        """Do what a person does: say who one is, and say yes."""
        self.asked.append(url)
        async with self.http.AsyncClient() as browser:
            for _ in range(20):
                page = await browser.get(url)
                if page.status_code >= 300:
                    url = urljoin(url, page.headers["location"])
                else:
                    (prompt,) = re.findall(r'name="prompt" value="(\w+)"', page.text)
                    said = await browser.post(url, data={"prompt": prompt, "login": "ana", "password": "x"})
                    url = urljoin(url, said.headers["location"])
                if url.startswith(REDIRECT):
                    self.answer = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
                    return
        raise RuntimeError("the login leads on and on")


def provider_of(url: str, kept: Kept, kind: str) -> OAuthClientProvider:
    async def answered() -> Any:
        if kind == "mcp1":
            return kept.answer["code"], kept.answer["state"]
        from mcp.client.auth import AuthorizationCodeResult

        return AuthorizationCodeResult(
            code=kept.answer["code"], state=kept.answer.get("state"), iss=kept.answer.get("iss")
        )

    metadata = OAuthClientMetadata(
        client_name="e2e", redirect_uris=[AnyUrl(REDIRECT)], token_endpoint_auth_method="none"
    )
    return OAuthClientProvider(url, metadata, kept, kept.sign_in, answered)


async def opened(stack: AsyncExitStack, url: str, kind: str, http: Any) -> ClientSession:
    from mcp.client import streamable_http

    client = await stack.enter_async_context(http)
    streams = await stack.enter_async_context(streamable_http.streamable_http_client(url, http_client=client))
    session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
    await session.initialize()
    return session


async def report(url: str, kind: str, life_s: float) -> dict[str, Any]:
    http = import_module("httpx" if kind == "mcp1" else "httpx2")
    kept = Kept(http)
    async with AsyncExitStack() as stack:
        client = http.AsyncClient(auth=provider_of(url, kept, kind), timeout=30)
        session = await opened(stack, url, kind, client)

        async def call() -> str:
            wanted = {"tool_path": "time:get_current_time", "arguments": {"timezone": "Europe/Berlin"}}
            result: Any = await session.call_tool("execute_mcp_tool", wanted)
            return str(result.content[0].text)

        report: dict[str, Any] = {"asked": kept.asked[0], "called": [await call()]}
        if life_s:
            assert kept.tokens is not None
            assert kept.client is not None
            token = kept.tokens.access_token
            await anyio.sleep(life_s + 0.5)
            report["called"].append(await call())
            report["renewed"] = kept.tokens.access_token != token
            revocation = urljoin(kept.asked[0], "/token/revocation")
            taken = {"token": kept.tokens.refresh_token, "client_id": kept.client.client_id}
            async with http.AsyncClient() as plain:
                report["revocation"] = (await plain.post(revocation, data=taken)).status_code
            await anyio.sleep(life_s + 0.5)
            report["called"].append(await call())
        report["redirected"] = len(kept.asked)
    return report


async def main() -> None:
    url, kind, life_s = sys.argv[1:]
    with anyio.fail_after(DEADLINE_S):
        print(json.dumps(await report(url, kind, float(life_s))))


if __name__ == "__main__":
    anyio.run(main, backend="trio" if sys.argv[2] == "mcp2" else "asyncio")
