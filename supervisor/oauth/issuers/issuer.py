"""Speaks to the authorization server of one server (RFC 6749, 7009, 7523, 7591, 7636, 8707).

- authlib writes the messages; what comes back is read by strict types, as it may be anything.
- Everything raises `OAuthTrouble`; what is `Unreached` says nothing about the tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote, unquote_plus

import msgspec
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7009 import prepare_revoke_token_request
from authlib.oauth2.rfc7523.assertion import private_key_jwt_sign
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc.jwk import import_key
from msgspec.structs import replace

from actors.protocol.wire import json
from actors.transport.redaction import Confidential
from supervisor.config import OAuthConfig
from supervisor.oauth.issuers.fetch import Fetched, Fetcher
from supervisor.oauth.issuers.metadata import IssuerMetadata, IssuerRefused, OAuthTrouble, Unreached, words_of

# What is kept of a login: which server it is for, who issued it, as which client, and the tokens.
#
# A grant is bound to the server's address, the issuer and the resource: if one of them changes it is not used any more.

AHEAD_S: Final = 60.0
"""An access token is renewed so long before it ends; one that lives for less than ten minutes, in its last tenth."""
LEAST_AHEAD_S: Final = 5.0
"""A tenth may be less than a renewal takes: then it is that, but half of the token's life at the most."""

AuthMethod = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]
"""How a client says who it is at the token endpoint (OpenID Connect Core 9)."""


class OAuthClient(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """Who we are to an issuer. `registered`: it gave us that name itself; `secret_until`: unix seconds, 0 for never."""

    id: str
    secret: str = ""
    method: AuthMethod = "none"
    redirect_uri: str = ""
    registered: bool = False
    secret_until: float = 0.0


class Tokens(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one server. Times are unix time in seconds; without `expires_at` nobody said how long they last."""

    access: str
    refresh: str = ""
    issued_at: float = 0.0
    expires_at: float | None = None
    scope: tuple[str, ...] = ()

    @property
    def life_s(self) -> float:
        return math.inf if self.expires_at is None else max(0.0, self.expires_at - self.issued_at)

    @property
    def ahead_s(self) -> float:
        return min(AHEAD_S, max(LEAST_AHEAD_S, self.life_s / 10), self.life_s / 2)

    def left_s(self, now: float) -> float:
        """Return how many seconds it has left: never more than it was issued for, wherever the clock was set to."""
        return math.inf if self.expires_at is None else min(self.expires_at - now, self.life_s)


class Grant(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """A login at the address `server`, asked for `scope`. `tokens` are None when of no use; `client` outlives them."""

    server: str
    issuer: IssuerMetadata
    resource: str
    client: OAuthClient
    tokens: Tokens | None = None
    scope: tuple[str, ...] = ()


# As which client we log in: one that is configured, our own document, or a name that the authorization server gives.
#
# In the order of MCP 2025-11-25, basic/authorization "Client Registration Approaches".

_PREFERRED: Final[tuple[AuthMethod, ...]] = ("none", "client_secret_basic", "client_secret_post")
_WITH_SECRET: Final[tuple[AuthMethod, ...]] = ("client_secret_basic", "client_secret_post")
MAX_ID_CHARS: Final = 4096

_Word = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_CHARS)]


class _RegistrationAnswer(msgspec.Struct):
    client_id: _Word
    client_secret: str | None = None
    client_secret_expires_at: float | None = None
    token_endpoint_auth_method: str | None = None


def known_client(
    config: OAuthConfig, issuer: IssuerMetadata, redirect_uri: str, kept: Grant | None, now: float
) -> OAuthClient | None:
    """Return whom to log in as; None if a name has to be asked for. Raises `OAuthTrouble` with what to configure."""
    if config.client_id:
        expected = config.issuer
        if not expected and kept is not None and kept.client.id == config.client_id:
            expected = kept.issuer.issuer  # who was told that client first: whoever else is named gets no secret of it
        if expected and expected != issuer.issuer:
            raise OAuthTrouble(
                'its authorization server is not the one that the configured client is known to ("issuer" in "oauth"); '
                "if it has moved, log out first"
            )
        method = _method(config, issuer)
        return OAuthClient(id=config.client_id, secret=config.client_secret, method=method, redirect_uri=redirect_uri)
    if config.client_metadata_url and issuer.client_id_metadata_document_supported:
        return OAuthClient(id=config.client_metadata_url, redirect_uri=redirect_uri)
    if kept is not None and _lasts(kept, issuer, redirect_uri, now):
        return kept.client
    if not issuer.registration_endpoint:
        raise OAuthTrouble(
            'its authorization server does not register clients by itself: register one there and put its "client_id" '
            'into "oauth" of the entry' + (f"; its redirect URI is {redirect_uri}" if redirect_uri else "")
        )
    return None


def _method(config: OAuthConfig, issuer: IssuerMetadata) -> AuthMethod:
    if config.private_key:
        return "private_key_jwt"
    if not config.client_secret:
        return "none"
    offered = issuer.token_endpoint_auth_methods_supported or _WITH_SECRET
    return next((method for offer in offered for method in _WITH_SECRET if method == offer), "client_secret_basic")


def _lasts(kept: Grant, issuer: IssuerMetadata, redirect_uri: str, now: float) -> bool:
    """Say whether a name that was given once can be used here: by the same issuer, for the same redirect address."""
    client = kept.client
    same = kept.issuer.issuer == issuer.issuer and client.redirect_uri == redirect_uri
    return client.registered and same and (client.secret_until == 0 or now < client.secret_until)


def wanted_method(issuer: IssuerMetadata) -> AuthMethod:
    """Return how we would like to say who we are: without a secret, or else as the authorization server likes best.

    The order is its own: there are some that take a secret in the head for tokens, and not for their revocation.
    """
    offered = issuer.token_endpoint_auth_methods_supported or ("none",)
    ours = [method for offer in offered for method in _PREFERRED if method == offer]
    return "none" if "none" in ours or not ours else ours[0]


def registration(redirect_uri: str, method: str, scope: tuple[str, ...]) -> dict[str, Any]:
    """Return what we say of ourselves to an authorization server that gives names to clients (RFC 7591 2)."""
    said: dict[str, Any] = {
        "client_name": "mcpvisor",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "native",
    }
    return {**said, "scope": " ".join(scope)} if scope else said


def read_registration(body: bytes, asked: AuthMethod, redirect_uri: str) -> OAuthClient:
    """Return the client of an answer to a registration (RFC 7591 3.2.1). Raises `OAuthTrouble` for what is none."""
    try:
        answer = json.read(msgspec.json.Decoder(_RegistrationAnswer), body)
    except json.UnreadableJson:
        raise OAuthTrouble("its authorization server gave an answer that is no registration") from None
    secret = answer.client_secret or ""
    named = answer.token_endpoint_auth_method
    method = asked if named is None else next((each for each in _PREFERRED if each == named), None)
    if method is None:
        raise OAuthTrouble("its authorization server wants a way of saying who we are that we do not have")
    if method in _WITH_SECRET and not secret:
        raise OAuthTrouble("its authorization server wants a secret of us and gave none")
    return OAuthClient(
        id=answer.client_id,
        secret=secret,
        method=method,
        redirect_uri=redirect_uri,
        registered=True,
        secret_until=answer.client_secret_expires_at or 0.0,
    )


FORM: Final = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
MAX_TOKEN_CHARS: Final = 16 * 1024
MAX_LIFE_S: Final = 10 * 365 * 86_400.0
ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ASSERTION_S: Final = 300
_BUSY: Final = 429
_CODES: Final = frozenset(
    {
        *("invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type"),
        *("invalid_scope", "access_denied", "server_error", "temporarily_unavailable", "invalid_target"),
        *("unsupported_response_type", "invalid_redirect_uri", "invalid_client_metadata", "login_required"),
        *("consent_required", "interaction_required"),
    }
)
"""The words for what is wrong (RFC 6749 4.1.2.1 and 5.2, RFC 7591 3.2.2, RFC 8707 2, OpenID Connect Core 3.1.2.6)."""

_Token = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TOKEN_CHARS, pattern=r"^[!-~]+$")]


class _TokenAnswer(msgspec.Struct):
    access_token: _Token
    token_type: str
    expires_in: float | str | None = None
    refresh_token: _Token | None = None
    scope: str | None = None


class _ErrorAnswer(msgspec.Struct):
    error: str


_token_answer = msgspec.json.Decoder(_TokenAnswer)
_error_answer = msgspec.json.Decoder(_ErrorAnswer)


class AuthorizationServer:
    """One authorization server after the other: which one is said with each question. `clock` gives unix time."""

    def __init__(self, config: OAuthConfig, fetcher: Fetcher, clock: Callable[[], float]) -> None:
        self._config = config
        self._fetcher = fetcher
        self._clock = clock

    async def register(self, issuer: IssuerMetadata, redirect_uri: str, scope: tuple[str, ...]) -> OAuthClient:
        """Ask for a name (RFC 7591)."""
        method = wanted_method(issuer)
        said = registration(redirect_uri, method, scope)
        headers = {"content-type": "application/json", "accept": "application/json"}
        page = await self._post(issuer.registration_endpoint, headers, msgspec.json.encode(said))
        if page.status not in (200, 201):
            raise refusal_of(page.status, page.body)
        return read_registration(page.body, method, redirect_uri)

    async def exchange(self, grant: Grant, code: str, verifier: str) -> Tokens:
        """Return tokens for a code (RFC 6749 4.1.3)."""
        members = {"redirect_uri": grant.client.redirect_uri, "code": code, "code_verifier": verifier}
        return await self._tokens(grant, "authorization_code", **members)

    async def refresh(self, grant: Grant) -> Tokens:
        """Return new tokens for old ones (RFC 6749 6)."""
        before = grant.tokens or Tokens(access="")
        return await self._tokens(grant, "refresh_token", refresh_token=before.refresh)

    async def machine(self, grant: Grant) -> Tokens:
        """Return tokens for the client itself (RFC 6749 4.4); there is nothing to renew them with."""
        tokens = await self._tokens(grant, "client_credentials", scope=" ".join(grant.scope))
        return replace(tokens, refresh="")

    async def _tokens(self, grant: Grant, kind: str, **members: str) -> Tokens:
        body, headers = token_request(self._config, grant, kind, **members)
        page = await self._post(grant.issuer.token_endpoint, headers, body)
        return tokens_of(page.status, page.body, self._clock(), grant.tokens)

    async def revoke(self, grant: Grant) -> bool:
        """Have both tokens taken back (RFC 7009), the refresh token first; False where that is not possible."""
        endpoint, tokens = grant.issuer.revocation_endpoint, grant.tokens
        if not endpoint or tokens is None:
            return False
        for hint, token in (("refresh_token", tokens.refresh), ("access_token", tokens.access)):
            if token:
                body, headers = revocation_request(self._config, grant, token, hint)
                page = await self._post(endpoint, headers, body)
                if page.status != 200:
                    raise refusal_of(page.status, page.body)
        return True

    async def _post(self, endpoint: str | None, headers: dict[str, str], body: bytes) -> Fetched:
        page = await self._fetcher.post(endpoint or "", headers, body)
        if page.status >= 500 or page.status == _BUSY:
            raise Unreached(f"its authorization server is not available (HTTP {page.status})")
        if 300 <= page.status < 400:
            raise OAuthTrouble("its authorization server sends us elsewhere, where nothing is sent")
        return page


def authorization_url(endpoint: str, grant: Grant, *, state: str, verifier: str) -> str:
    """Return where a user says yes. `verifier` is the secret behind the challenge (RFC 7636).

    What the endpoint has in its query stays there, but no parameter may be there twice (RFC 6749 3.1): ours count.
    """
    members = {
        "redirect_uri": grant.client.redirect_uri,
        "scope": " ".join(grant.scope) or None,
        "state": state,
        "code_challenge": create_s256_code_challenge(verifier),
        "code_challenge_method": "S256",
        "resource": grant.resource,
        "prompt": "consent" if "offline_access" in grant.scope else None,  # else ignored (OpenID Connect Core 11)
    }
    given = {"client_id", "response_type", *(name for name, value in members.items() if value)}
    url: str = prepare_grant_uri(_without(endpoint, given), grant.client.id, "code", **members)
    return url


def _without(url: str, names: Collection[str]) -> str:
    """Return an address without some parameters of its query; the others stay as they are written."""
    before, mark, query = url.partition("?")
    query, hash_, fragment = query.partition("#")
    kept = [each for each in query.split("&") if unquote_plus(each.partition("=")[0]) not in names]
    return f"{before}{mark if any(kept) else ''}{'&'.join(kept)}{hash_}{fragment}"


def token_request(config: OAuthConfig, grant: Grant, kind: str, **members: str) -> tuple[bytes, dict[str, str]]:
    """Return body and headers of a request to the token endpoint, for a grant of that kind (RFC 6749)."""
    return _authenticate(config, grant, prepare_token_request(kind, resource=grant.resource, **members))


def revocation_request(config: OAuthConfig, grant: Grant, token: str, hint: str) -> tuple[bytes, dict[str, str]]:
    """Return body and headers of a request to the revocation endpoint (RFC 7009 2.1)."""
    body, _ = prepare_revoke_token_request(token, hint, "", {})
    return _authenticate(config, grant, body)


def _authenticate(config: OAuthConfig, grant: Grant, body: str) -> tuple[bytes, dict[str, str]]:
    client = grant.client
    id_, secret, method = client.id, client.secret, client.method
    if method == "private_key_jwt":
        signed = _sign(config, grant)
        body = f"{body}&client_assertion_type={quote(ASSERTION, safe='')}&client_assertion={signed}"
        method = "none"
    elif method == "client_secret_basic":  # both are encoded before they are joined: RFC 6749 2.3.1
        id_, secret = quote(id_, safe=""), quote(secret, safe="")
        # The official Python SDK's authorization server looks for the client in the body all the same.
        body = f"{body}&client_id={id_}"
    headers: Mapping[str, str]
    _, headers, body = ClientAuth(id_, secret, method).prepare("POST", "", dict(FORM), body)
    return body.encode(), dict(headers)


def _sign(config: OAuthConfig, grant: Grant) -> str:
    """Return what says who a client is that has no secret but a private key in PEM (RFC 7523)."""
    if not config.private_key:
        raise OAuthTrouble('this way of saying who we are needs a "private_key" in the configuration')
    algorithm, audience = config.signing_alg, grant.issuer.issuer
    try:
        key = import_key(config.private_key, "EC" if algorithm.startswith("ES") else "RSA")
        signed: str = private_key_jwt_sign(key, grant.client.id, audience, alg=algorithm, expires_in=_ASSERTION_S)
    except Exception:  # noqa: BLE001  (of the libraries' own: their words may hold the key)
        raise OAuthTrouble('the "private_key" in the configuration cannot be used with its algorithm') from None
    return signed


def tokens_of(status: int, body: bytes, now: float, before: Tokens | None = None) -> Tokens:
    """Return the tokens of an answer; what it does not name stays as `before` (RFC 6749 6). Raises `OAuthTrouble`."""
    if status != 200:
        raise refusal_of(status, body)
    try:
        answer = json.read(_token_answer, body)
        life = None if answer.expires_in is None else float(answer.expires_in)
    except ValueError:
        raise OAuthTrouble("its authorization server gave an answer that is no token") from None
    if answer.token_type.lower() != "bearer":
        raise OAuthTrouble("its authorization server gave a token of a type that is not Bearer")
    return Tokens(
        access=answer.access_token,
        refresh=answer.refresh_token or (before.refresh if before is not None else ""),
        issued_at=now,
        expires_at=now + min(max(life, 0.0), MAX_LIFE_S) if life is not None and life == life else None,
        scope=words_of(answer.scope) if answer.scope is not None else (before.scope if before is not None else ()),
    )


def refusal_of(status: int, body: bytes) -> IssuerRefused:
    """Return what an answer that is no success says. Its text is not repeated, only the standard's words for it."""
    answer = json.read_or(_error_answer, body, None)
    code = "" if answer is None else code_of(answer.error)
    said = f"{code}, HTTP {status}" if code else f"HTTP {status}"
    return IssuerRefused(f"its authorization server refused ({said})", code)


def code_of(word: str) -> str:
    return word if word in _CODES else ""
