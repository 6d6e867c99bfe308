"""What a daemon serves, as documents that others read before they connect: cards, catalogue, registry. Pure.

- A card says of one MCP server who it is and where it is reached (SEP-2127, final; `schema.ts` and
  `docs/discovery.md` of modelcontextprotocol/experimental-ext-server-card at 8924e08). Each door has one at its address
  and `/server-card`, the place that is reserved for it there.
- The catalogue names the cards (AI Catalog 1.0, `specification/ai-catalog.md` of Agent-Card/ai-catalog at 634a09d, with
  `type` for `mediaType` as its ADR 0014 and discovery.md have it).
- The registry has the same servers as `server.json` (schema 2025-12-11; `docs/reference/api/openapi.yaml` of
  modelcontextprotocol/registry at 145c2ec, "Generic Registry API" v0.1). It is read-only, and has one version of each.
- Of the server behind a door nothing is in there but what it says of itself and what its operator says that it is for:
  no command, argument, variable, or address. A client reaches it here.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from actors.protocol.agreement.versions import LEGACY_VERSIONS, MODERN_VERSIONS
from supervisor.metatools.texts import clean
from supervisor.service.doors.addresses import ALL_PATH, CARD, MCP_PATH, path_of

CARD_TYPE: Final = "application/mcp-server-card+json"
CATALOGUE_TYPE: Final = "application/ai-catalog+json"
CATALOGUE_PATH: Final = "/.well-known/ai-catalog.json"
CARD_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
SERVER_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
SPEC_VERSION: Final = "1.0"
LOCAL: Final = "localhost"
"""The publisher of what only its own machine, or an address without a name, reaches."""
MAX_TEXT_CHARS: Final = 100
MAX_VERSION_CHARS: Final = 255
NO_VERSION: Final = "0.0.0"
"""Of a server that has never said one; the schema wants one."""
_OUTSIDE_NAME: Final = re.compile(r"[^a-zA-Z0-9._-]")
_OUTSIDE_VERSION: Final = re.compile(r"[^a-zA-Z0-9.+_-]")
_TOKEN: Final = {"name": "Authorization", "description": "Bearer, a blank and a token of this daemon", "isSecret": True}


class Site(msgspec.Struct, frozen=True):
    """Whose documents they are. `base` is the address of the daemon, without a slash at its end.

    `needs_token`: a client has to be given one, as no provider issues any.
    """

    base: str
    version: str
    needs_token: bool = False

    @property
    def publisher(self) -> str:
        """The name of the host; see `LOCAL`."""
        host = urlsplit(self.base).hostname or ""
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return host or LOCAL
        return LOCAL


class Served(msgspec.Struct, frozen=True):
    """What is served at a door, by the path of it. Texts are as a server, or its operator, wrote them."""

    path: str
    title: str
    description: str
    version: str


def own_doors(version: str) -> tuple[Served, ...]:
    """Return the doors to everything."""
    return (
        Served(MCP_PATH, "mcpvisor", "All servers of this daemon, behind tools that find and run theirs", version),
        Served(ALL_PATH, "mcpvisor, all tools", "Every tool, resource and prompt of all servers here", version),
    )


def served(server: str, title: str, description: str, version: str) -> Served:
    return Served(path_of(server), title, description, version)


def card(site: Site, of: Served) -> dict[str, Any]:
    """Return the card of a door."""
    remote = {**_remote(site, of), "supportedProtocolVersions": [*LEGACY_VERSIONS, *MODERN_VERSIONS]}
    return {"$schema": CARD_SCHEMA, **_identity(site, of), "remotes": [remote]}


def catalogue(site: Site, doors: Sequence[Served]) -> dict[str, Any]:
    """Return the AI Catalog of these doors."""
    entries = [
        {
            "identifier": f"urn:air:{site.publisher}:mcp:{name_of(of)}",
            "displayName": _identity(site, of)["title"],
            "type": CARD_TYPE,
            "url": f"{site.base}{of.path}{CARD}",
        }
        for of in doors
    ]
    return {"specVersion": SPEC_VERSION, "host": {"displayName": "mcpvisor"}, "entries": entries}


def server_json(site: Site, of: Served) -> dict[str, Any]:
    """Return the `server.json` of a door."""
    return {"$schema": SERVER_SCHEMA, **_identity(site, of), "remotes": [_remote(site, of)]}


def name_of(of: Served) -> str:
    """Return the name of a door below its namespace: its path, with dots.

    It ends with a mark where the schema lacks a letter of it, so that two doors never have the same.
    """
    name = of.path.strip("/").replace("/", ".")
    fitting = _OUTSIDE_NAME.sub("-", unquote(name))
    return fitting if fitting == name else f"{fitting}-{hashlib.blake2b(name.encode(), digest_size=4).hexdigest()}"


@lru_cache(maxsize=1024)
def _namespace(publisher: str) -> str:
    """Return the reverse of a host's name, as far as the schema has letters for it."""
    return re.sub(r"[^a-zA-Z0-9.-]", "-", ".".join(reversed(publisher.split("."))))[:100]


def full_name(site: Site, of: Served) -> str:
    """Return the name of a door as card and registry have it: the host in reverse, a slash, and its own."""
    return f"{_namespace(site.publisher)}/{name_of(of)}"


def _identity(site: Site, of: Served) -> dict[str, Any]:
    title = _line(of.title) or name_of(of)
    return {
        "name": full_name(site, of),
        "title": title,
        "description": _line(of.description) or _line(f"The MCP server {title}"),
        "version": version_of(of),
    }


def version_of(of: Served) -> str:
    """Return a version that a path can have; `latest` means another thing there."""
    version = _OUTSIDE_VERSION.sub("-", of.version)[:MAX_VERSION_CHARS].lstrip("-")
    return NO_VERSION if version in ("", "latest") else version


def _remote(site: Site, of: Served) -> dict[str, Any]:
    remote: dict[str, Any] = {"type": "streamable-http", "url": f"{site.base}{of.path}"}
    return {**remote, "headers": [{**_TOKEN, "isRequired": True}]} if site.needs_token else remote


def _line(text: str) -> str:
    """Return a text on one line without what cannot be seen, at most so long as the schemas allow."""
    line = " ".join(clean(text).split())
    return line if len(line) <= MAX_TEXT_CHARS else line[: MAX_TEXT_CHARS - 1].rstrip() + "…"


class Document(msgspec.Struct, frozen=True):
    """The bytes of a document, and what tells them from others (RFC 9110 8.8.3)."""

    body: bytes
    tag: str

    @classmethod
    def of(cls, value: Any) -> Document:
        body = msgspec.json.encode(value)
        return cls(body, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"')

    def is_known(self, if_none_match: str) -> bool:
        """Say whether whoever sent this header has the document (RFC 9110 13.1.2)."""
        known = {each.strip().removeprefix("W/") for each in if_none_match.split(",")}
        return self.tag in known or known == {"*"}
