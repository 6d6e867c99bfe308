"""A real MCP server behind a real authorization server: the official SDK's, with what it keeps in memory.

A program: `python login_server.py PORT [LIFE_S]`. Whoever comes to its authorization page says yes at once. What tests
want to know, or to change, has pages under `/control/`.
"""

from __future__ import annotations

import secrets
import sys
import time
from typing import Any

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

SCOPE = "notes"
ELSEWHERE = "https://elsewhere.example/mcp"
RATHER_LONG_S = 3600


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Gives tokens to everybody who is registered, and takes them back. `life_s` is that of an access token."""

    def __init__(self, life_s: int) -> None:
        self.life_s = life_s
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.counts = {"registered": 0, "exchanged": 0, "refreshed": 0, "revoked": 0}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self.counts["registered"] += 1
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        assert client.client_id is not None
        code = secrets.token_urlsafe(32)
        self.codes[code] = AuthorizationCode(
            code=code,
            client_id=client.client_id,
            scopes=params.scopes or [SCOPE],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        self.counts["exchanged"] += 1
        return self._tokens(authorization_code.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        self.counts["refreshed"] += 1
        return self._tokens(refresh_token.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.counts["revoked"] += 1
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def _tokens(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        until = int(time.time()) + self.life_s
        self.access[access] = AccessToken(
            token=access, client_id=client, scopes=scopes, expires_at=until, resource=resource
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes, resource=resource)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.life_s, scope=" ".join(scopes))


def server(port: int, life_s: int) -> MCPServer[Any]:
    """The server, at `http://127.0.0.1:PORT/mcp`, which is its own issuer."""
    provider = Provider(life_s)
    base = f"http://127.0.0.1:{port}"
    mcp = MCPServer(
        "guarded",
        auth_server_provider=provider,
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(base),
            resource_server_url=AnyHttpUrl(f"{base}/mcp"),
            required_scopes=[SCOPE],
            validate_token_resource=True,
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=[SCOPE], default_scopes=[SCOPE]
            ),
            revocation_options=RevocationOptions(enabled=True),
        ),
    )

    @mcp.tool()
    def echo(text: str) -> str:
        """Return a text as it is."""
        return text

    async def counts(request: Request) -> Response:
        return JSONResponse({**provider.counts, "access": len(provider.access), "refresh": len(provider.refresh)})

    async def secrets_given(request: Request) -> Response:
        given = [known.client_secret for known in provider.clients.values() if known.client_secret]
        return JSONResponse([*provider.access, *provider.refresh, *given])

    async def forget(request: Request) -> Response:
        """Forget access tokens, and refresh tokens if asked to; `other` makes them for another resource."""
        provider.access.clear()
        if "refresh" in request.query_params:
            provider.refresh.clear()
        return JSONResponse({})

    async def other(request: Request) -> Response:
        """Let every token be for another resource from now on."""
        for token in provider.access.values():
            token.resource = ELSEWHERE
        for renewing in provider.refresh.values():
            renewing.resource = ELSEWHERE
        return JSONResponse({})

    mcp.custom_route("/control/counts", methods=["GET"])(counts)
    mcp.custom_route("/control/secrets", methods=["GET"])(secrets_given)
    mcp.custom_route("/control/forget", methods=["POST"])(forget)
    mcp.custom_route("/control/other", methods=["POST"])(other)
    return mcp


def main() -> None:
    port = int(sys.argv[1])
    life_s = int(sys.argv[2]) if len(sys.argv) > 2 else RATHER_LONG_S
    server(port, life_s).run("streamable-http", port=port)


if __name__ == "__main__":
    main()
