"""What servers and authorization servers say of logins: when they refuse, and in documents; what of it is believed.

- A resource's document must be about the server it was asked of (RFC 9728 3.3), an issuer's about that issuer (RFC 8414
  3.3, OpenID Connect Discovery 4.3): else somebody speaks for somebody else.
- Without PKCE by S256 there is no login (MCP 2025-11-25, basic/authorization "Authorization Code Protection").
- A malformed part of a challenge is as if it were not there.
- Pure. Which of the addresses may be asked is another question: see `check_addresses`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

import msgspec

from actors.transport.http.addresses import plain, where
from supervisor.config.address import PORTS

# What may go wrong between us and an authorization server, for the operator.
#
# Reasons are ours: of what others wrote they hold at most a word that passed a strict pattern.


class OAuthTrouble(Exception):
    """Something that ends a login, or a renewal of tokens. `reason` is for the operator and free of secrets."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Unreached(OAuthTrouble):
    """Nobody could be asked, or only somebody who is down: that says nothing about the tokens."""


class IssuerRefused(OAuthTrouble):
    """The authorization server says no. `code` is its word for it (RFC 6749 5.2), empty if it has none."""

    def __init__(self, reason: str, code: str = "") -> None:
        super().__init__(reason)
        self.code = code


RESOURCE: Final = "/.well-known/oauth-protected-resource"
ISSUER: Final = "/.well-known/oauth-authorization-server"
OPENID: Final = "/.well-known/openid-configuration"
MAX_HEADER_CHARS: Final = 8192
MAX_SCOPES: Final = 64
_BEARER: Final = re.compile(r"(?:^|,)\s*bearer(?=[\s,]|$)", re.IGNORECASE)
_PARAMETER: Final = re.compile(
    r"""\s*,?\s*(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s,"]+))"""
)
_ESCAPED: Final = re.compile(r"\\(.)")
_SCOPE: Final = re.compile(r"[!#-\[\]-~]{1,256}")
"""One word of a scope (RFC 6749 3.3)."""


class Challenge(msgspec.Struct, frozen=True, kw_only=True):
    """What a server wants that refuses a request (RFC 6750 3, RFC 9728 5.1). `scope` is empty where it names none."""

    resource_metadata: str = ""
    scope: tuple[str, ...] = ()
    error: str = ""

    @property
    def insufficient(self) -> bool:
        """Whether the token is good, but does not allow enough (RFC 6750 3.1)."""
        return self.error == "insufficient_scope"


def challenge_of(headers: Iterable[str]) -> Challenge:
    """Return the first `Bearer` challenge of some `WWW-Authenticate` headers; an empty one if there is none."""
    for header in headers:
        text = header[:MAX_HEADER_CHARS]
        if begin := _BEARER.search(text):
            return _challenge(text, begin.end())
    return Challenge()


def _challenge(text: str, at: int) -> Challenge:
    parameters: dict[str, str] = {}
    while part := _PARAMETER.match(text, at):
        quoted = part["quoted"]
        value = part["plain"] if quoted is None else _ESCAPED.sub(r"\1", quoted)
        parameters.setdefault(part["name"].lower(), value)
        at = part.end()
    return msgspec.convert({**parameters, "scope": words_of(parameters.get("scope", ""))}, Challenge)


def words_of(scope: str) -> tuple[str, ...]:
    """Return the words of a scope, each once, in their order; what is no word of one is dropped."""
    words = dict.fromkeys(word for word in scope.split() if _SCOPE.fullmatch(word))
    return tuple(words)[:MAX_SCOPES]


class ResourceMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 9728 2, as far as it is used. `resource` is what tokens are asked for."""

    resource: str
    authorization_servers: tuple[str, ...] = ()
    scopes_supported: tuple[str, ...] | None = None


class IssuerMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 8414 2 and what others add to it, as far as it is used."""

    issuer: str
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    introspection_endpoint: str | None = None
    jwks_uri: str | None = None
    scopes_supported: tuple[str, ...] | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] | None = None
    code_challenge_methods_supported: tuple[str, ...] | None = None
    client_id_metadata_document_supported: bool | None = None
    authorization_response_iss_parameter_supported: bool | None = None


def canonical(url: str) -> str:
    """Return the address of a server as a resource (RFC 8707 2): scheme and host in lower case, no fragment."""
    parts = urlsplit(url)
    path = "" if parts.path == "/" else parts.path
    return urlunsplit((parts.scheme, _host(parts), path, parts.query, ""))


def origin(url: str) -> str:
    """Return scheme, host and port of an address, as an address. Raises `ValueError` if it is none."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, _host(parts), "", "", ""))


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    named = f"[{host}]" if ":" in host else host
    port = parts.port
    return named if port is None or port == PORTS.get(parts.scheme) else f"{named}:{port}"


def resource_addresses(server: str, challenge: Challenge) -> tuple[str, ...]:
    """Return where the document about a server may be, best first (MCP 2025-11-25, basic/authorization)."""
    if challenge.resource_metadata:
        return (challenge.resource_metadata,)
    root, path = origin(server), urlsplit(server).path.rstrip("/")
    return tuple(dict.fromkeys((f"{root}{RESOURCE}{path}", f"{root}{RESOURCE}")))


def issuer_addresses(issuer: str) -> tuple[str, ...]:
    """Return where the document about an issuer may be, in the order that the specification lays down."""
    root, path = origin(issuer), urlsplit(issuer).path.rstrip("/")
    return tuple(dict.fromkeys((f"{root}{ISSUER}{path}", f"{root}{OPENID}{path}", f"{root}{path}{OPENID}")))


def covers(resource: str, server: str) -> bool:
    """Say whether a resource is a server, or all that is below an address at or above the server's."""
    try:
        wide, narrow = urlsplit(canonical(resource)), urlsplit(canonical(server))
    except ValueError:
        return False
    if (wide.scheme, wide.netloc) != (narrow.scheme, narrow.netloc) or wide.query not in ("", narrow.query):
        return False
    path = wide.path.rstrip("/")
    return narrow.path == path or narrow.path.startswith(f"{path}/") or narrow.path.rstrip("/") == path


def checked_resource(document: ResourceMetadata, server: str) -> ResourceMetadata:
    """Return a document that is about a server. Raises `OAuthTrouble`."""
    if not covers(document.resource, server):
        raise OAuthTrouble(
            "its metadata are about another resource than the server: a login would be for somebody else"
        )
    if not document.authorization_servers:
        raise OAuthTrouble("its metadata name no authorization server")
    return document


def checked_issuer(document: IssuerMetadata, issuer: str) -> IssuerMetadata:
    """Return a document that is about an issuer and can be used. Raises `OAuthTrouble`."""
    if document.issuer != issuer:
        raise OAuthTrouble("the metadata of its authorization server name another issuer: they are not used")
    if not document.token_endpoint:
        raise OAuthTrouble("the metadata of its authorization server name no token endpoint")
    return document


def check_login(document: IssuerMetadata) -> str:
    """Return the authorization endpoint. Raises `OAuthTrouble` where nobody can log in safely."""
    if "S256" not in (document.code_challenge_methods_supported or ()):
        raise OAuthTrouble("its authorization server does not say that it supports PKCE by S256: a login is not safe")
    if not document.authorization_endpoint:
        raise OAuthTrouble("the metadata of its authorization server name no authorization endpoint")
    return document.authorization_endpoint


def legacy_issuer(server: str) -> IssuerMetadata:
    """Return what holds where a server publishes nothing (MCP 2025-03-26, basic/authorization "Fallbacks")."""
    root = origin(server)
    return IssuerMetadata(
        issuer=root,
        authorization_endpoint=f"{root}/authorize",
        token_endpoint=f"{root}/token",
        registration_endpoint=f"{root}/register",
        code_challenge_methods_supported=("S256",),
    )


# Which addresses may be asked that a server, or an authorization server, names.
#
# What the operator wrote is allowed; what others name must be out in the world, or where the operator's own server is:
# else a server could have us ask what only we can reach (MCP, "Security Best Practices", server-side request forgery).


def split(url: str) -> SplitResult:
    if (parts := plain(url)) is None:
        raise OAuthTrouble("it names something that is no plain https address")
    return parts


def check_scheme(url: str, operators: str) -> SplitResult:
    """Return the parts of an address that may be asked as far as its letters go. Raises `OAuthTrouble`.

    `operators` is the address of the server as its operator wrote it.
    """
    parts = split(url)
    local = is_local_name(parts.hostname) and is_local_name(urlsplit(operators).hostname)
    if parts.scheme != "https" and not local and origin(url) != origin(operators):
        raise OAuthTrouble("it names an address without TLS (http), which is not asked")
    return parts


def is_local_name(host: str | None) -> bool:
    return host is not None and (host == "localhost" or host.endswith(".localhost") or where(host) == "loopback")


def check_addresses(host: str, addresses: Collection[str], operators_host: str, operators: Collection[str]) -> None:
    """Raise `OAuthTrouble` unless every IP address of a host may be asked; `operators` are those of the server."""
    if host == operators_host:
        return
    allowed = {"public"} | ({where(address) for address in operators} & {"private", "loopback"})
    if not addresses or not {where(address) for address in addresses} <= allowed:
        raise OAuthTrouble("it names an address in a private network, on this machine or in a cloud: it is not asked")
