"""What a setting may be: durations, sizes and counts with their bounds, and the words that it may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeVar

from msgspec import Meta

T = TypeVar("T")

Seconds = Annotated[float, Meta(ge=0, le=31_536_000)]
"""A duration of at most a year."""

PositiveSeconds = Annotated[float, Meta(ge=0.001, le=31_536_000)]
"""A duration that cannot be switched off."""

Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]

Size = Annotated[int, Meta(ge=1024, le=1_073_741_824)]
"""Bytes, from 1 KiB to 1 GiB."""

Mebibytes = Annotated[int, Meta(ge=1, le=1_073_741_824)]
"""Memory, from 1 MiB on."""

TokenBudget = Annotated[int, Meta(ge=1000, le=1_000_000_000)]
"""Tokens of a result; less would hardly hold its shape and where the rest is."""

Derived = Annotated[T, Meta(extra={"derived": True})]
"""A field that is no key of the file, but follows from others."""

Kind = Literal["stdio", "http", "sse", "websocket"]
"""How a server is reached. `http` is MCP's Streamable HTTP, `sse` the older HTTP+SSE."""

KINDS: Final[Mapping[str, Kind]] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "sse": "sse",
    "ws": "websocket",
    "websocket": "websocket",
}
"""The words for transports in the wild."""

Restart = Literal["transient", "permanent", "temporary"]
"""OTP's words: restart only after a failure, always, never."""

Ask = Literal["none", "clients", "everyone"]
"""Whom servers may ask: nobody, clients that say that they can be asked, or through their models all others, too."""

Auth = Literal["none", "tokens", "oauth", "both"]
"""What a request has to show: nothing, a token of the daemon's own, one of an identity provider, or either."""

OWN_TOKENS: Final = ("tokens", "both")
PROVIDER_TOKENS: Final = ("oauth", "both")
"""With which of `auth` tokens of the daemon's own are taken, and those of identity providers."""

Confirm = Literal["none", "safe", "moderate", "dangerous"]
"""The safety level from which on a tool needs a yes; no level needs one with the first."""

Eras = Literal["auto", "legacy", "modern"]

Grant = Literal["authorization_code", "client_credentials"]
"""How tokens are got (RFC 6749 1.3): a user says yes, or the client has rights of its own."""

SandboxKind = Literal["bubblewrap", "none"]
"""What a local server is put into, if anything."""

Whose = Literal["everyone", "user"]
"""Whose a login is: one for all who have the server, or one for each user."""

SigningAlgorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
"""What a client's own key signs by (RFC 7518 3.1)."""

LogLevel = Literal["debug", "info", "warning", "error"]

LogFormat = Literal["text", "json"]
"""How the daemon writes its log: lines for people, or an object of JSON on each line."""

Rerank = Literal["auto", "off", "neural"]
"""Whether search compares meanings: if a sentence model is installed, never, or with a warning without one."""

Structured = Literal["auto", "always", "never"]
"""Whether a search answers with structured content beside its text."""

MIB = 1024 * 1024
