"""The pages that say what is served here, before anybody connects: cards, the AI Catalog, the registry.

- Whoever may use a door may read its card. Without a credential, where one is needed, the two doors to everything are
  told of, as on `/`, and no server.
- Another server's document is never told from one that there is not: what somebody does not see has no page.
- A document is made anew only when what it says has changed, beside the loop. Its `ETag` is that of its bytes: the
  revision of the catalogue begins anew with each daemon, and the same number stands for other servers then.
- A page of another origin is refused, as everywhere: what a machine has is not for every page in its browser. So there
  is no `Access-Control-Allow-Origin: *`, which the card's discovery.md wants for public ones.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
from quart import Response, request

from actors.catalogue.snapshot import Catalogue
from actors.errors import UnknownServer
from actors.messages import ServerStatus
from actors.protocol.wire import json
from supervisor import operations
from supervisor.front.pages.performing import performs
from supervisor.front.pages.requests import REQUESTER
from supervisor.front.pages.view import View
from supervisor.identity.requester import ANYBODY
from supervisor.service.doors import cards
from supervisor.service.doors.addresses import CARD, path_of
from supervisor.service.doors.cards import Document, Served, Site

_MAX_LIMIT: Final = 100
_MAX_KEPT: Final = 32
"""So many documents are kept, each as large as its servers are many."""
_MAX_TIMES: Final = 4096
_DOOR_BYTES: Final = 1000
"""What a door costs to tell of, as the bench has it: a large part of what is written of it."""
_JSON: Final = "application/json"
_OFFICIAL: Final = "io.modelcontextprotocol.registry/official"
Timed = tuple[Served, datetime]
Maker = Callable[[Site, tuple[Any, ...]], Any]


class RegistryQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of the registry. `search` is a part of the name, `updated_since` a moment of RFC 3339, `version` the one
    that there is, or `latest`.
    """

    cursor: Annotated[str, msgspec.Meta(max_length=300)] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=_MAX_LIMIT)] = 30
    search: Annotated[str, msgspec.Meta(max_length=200)] = ""
    updated_since: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    version: Annotated[str, msgspec.Meta(max_length=300)] = ""
    include_deleted: bool = False


class KnownDoors:
    """What there is to tell whoever asks for the page that is being made, and since when it is so."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._since: OrderedDict[Served, datetime] = OrderedDict()

    def site(self) -> Site:
        """Return whose documents they are: by the name that the daemon was asked by, which is one of its own."""
        settings = self.view.deployment.value.settings
        scheme = "https" if settings.tls_certificate else "http"
        base = settings.public_url.rstrip("/") or f"{scheme}://{request.host}"
        return Site(base, self.view.version, needs_token=settings.auth == "tokens")

    async def doors(self) -> tuple[Served, ...]:
        """Return the doors that whoever asks may use, those to everything first. A checkpoint if they see servers."""
        own, requester = cards.own_doors(self.view.version), REQUESTER.get()
        if requester is ANYBODY:
            return own
        visible = await self.view.seen_by(requester.person)
        seen, statuses = visible.catalogue, visible.statuses
        return own + await self.view.bench.run(len(seen.names.servers) * _DOOR_BYTES, _servers, seen, statuses)

    async def find(self, namespace: str, name: str) -> tuple[Served]:
        """Return the door that has a name in the registry. Raises `UnknownServer`."""
        site = self.site()
        for door in await self.doors():
            if cards.full_name(site, door) == f"{namespace}/{name}":
                return (door,)
        raise UnknownServer(f"there is no server {f'{namespace}/{name}'[:200]!a}; GET /v0.1/servers lists them")

    async def answer(self, make: Maker, told: tuple[Any, ...], kind: str) -> Response:
        """Answer with a document of these doors, or that whoever asks has it."""
        document = await self.view.bench.run(len(told) * _DOOR_BYTES, _made, make, self.site(), told)
        headers = {"ETag": document.tag, "Cache-Control": "private, no-cache", "Vary": "Authorization"}
        if document.is_known(request.headers.get("If-None-Match", "")):
            answer = Response(b"", 304, headers, content_type=kind)
            del answer.headers["Content-Length"]  # which would be that of the document (RFC 9110 8.6)
            return answer
        return Response(document.body, 200, headers, content_type=kind)

    def timed(self, doors: Sequence[Served]) -> tuple[Timed, ...]:
        """Return doors, each with the moment at which it was first seen as it is.

        Whoever asks what changed since they asked last is told of each change: it was seen then, or later.
        """
        now = datetime.fromtimestamp(self.view.clock(), UTC)
        for door in doors:
            self._since.setdefault(door, now)
            self._since.move_to_end(door)
        timed = tuple((door, self._since[door]) for door in doors)
        while len(self._since) > max(_MAX_TIMES, len(doors)):
            self._since.popitem(last=False)
        return timed


@performs(operations.AI_CATALOG)
async def ai_catalog(known: KnownDoors) -> Response:
    """Name the MCP servers here, each with the address of its card (AI Catalog). Without a token, where one is
    needed, these are the two doors to everything.
    """
    return await known.answer(cards.catalogue, await known.doors(), cards.CATALOGUE_TYPE)


@performs(operations.CARD)
@performs(operations.CARD_OF_ALL)
async def card(known: KnownDoors) -> Response:
    """Show the card of the door: who it is, where it is reached, which revisions it speaks (SEP-2127)."""
    path = request.path.removesuffix(CARD)
    own = tuple(door for door in cards.own_doors(known.view.version) if door.path == path)
    return await known.answer(_card, own, cards.CARD_TYPE)


@performs(operations.CARD_OF_SERVER)
async def card_of_server(known: KnownDoors, server: str) -> Response:
    """Show the card of a server, in the same way."""
    found = tuple(door for door in await known.doors() if door.path == path_of(server))
    if not found:
        raise UnknownServer(f"there is no MCP server {server[:100]!a} here")
    return await known.answer(_card, found, cards.CARD_TYPE)


@performs(operations.REGISTRY)
async def registry(known: KnownDoors, query: RegistryQuery) -> Response:
    """List the MCP servers here as `server.json`, by name, as a registry does (MCP Registry API v0.1). There is
    one version of each. `updated_since` counts from when the daemon saw a change, and does not tell of servers that
    are gone.
    """
    return await known.answer(_Page(query), known.timed(await known.doors()), _JSON)


@performs(operations.REGISTRY_VERSIONS)
async def versions(known: KnownDoors, namespace: str, entry: str) -> Response:
    """List the versions of a server, which is one. Its name has its slash as `%2F`, or as it is."""
    return await known.answer(_Page(), known.timed(await known.find(namespace, entry)), _JSON)


@performs(operations.REGISTRY_VERSION)
async def version(known: KnownDoors, namespace: str, entry: str, version: str) -> Response:
    """Show a server; `version` is the one that there is, or `latest`."""
    found = await known.find(namespace, entry)
    if version not in ("latest", there := cards.version_of(found[0])):
        raise UnknownServer(f"there is no version {version[:100]!a} of this server; there is {there!a}")
    return await known.answer(_single, known.timed(found), _JSON)


def _servers(seen: Catalogue, statuses: Mapping[str, ServerStatus]) -> tuple[Served, ...]:
    """Return the doors of the servers that somebody sees, but for those that are switched off."""
    served = []
    for server in sorted(seen.names.servers):
        status, entry = statuses.get(server), seen.entries.get(server)
        if status is not None and status.disabled:
            continue
        info = json.members(entry.offer.server_info) if entry is not None else {}
        said = {name: json.text_at(info.get(name, b"")) for name in ("title", "description")}
        described = entry.described if entry is not None else ""
        version = entry.offer.server_version if entry is not None else ""
        served.append(cards.served(server, said["title"] or server, described or said["description"], version))
    return tuple(served)


class _Page(msgspec.Struct, frozen=True):
    """Makes a page of the registry, of those servers that are asked for."""

    asked: RegistryQuery = RegistryQuery()

    def __call__(self, site: Site, doors: tuple[Timed, ...]) -> dict[str, Any]:
        named = sorted((cards.full_name(site, door), door, since) for door, since in doors)
        fit = [each for each in named if self._fits(*each)]
        page = fit[: self.asked.limit]
        rows = [_row(site, door, since) for _, door, since in page]
        more = {"nextCursor": page[-1][0]} if len(fit) > len(page) else {}
        return {"servers": rows, "metadata": {"count": len(rows), **more}}

    def _fits(self, name: str, door: Served, since: datetime) -> bool:
        asked = self.asked
        return (
            name > asked.cursor
            and asked.search.lower() in name.lower()
            and asked.version in ("", "latest", cards.version_of(door))
            and (asked.updated_since is None or since >= asked.updated_since)
        )


def _card(site: Site, doors: tuple[Served, ...]) -> dict[str, Any]:
    return cards.card(site, doors[0])


def _single(site: Site, doors: tuple[Timed, ...]) -> dict[str, Any]:
    return _row(site, *doors[0])


def _row(site: Site, door: Served, since: datetime) -> dict[str, Any]:
    official = {"status": "active", "publishedAt": since, "updatedAt": since, "isLatest": True}
    return {"server": cards.server_json(site, door), "_meta": {_OFFICIAL: official}}


@lru_cache(maxsize=_MAX_KEPT)
def _made(make: Maker, site: Site, doors: tuple[Any, ...]) -> Document:
    """Return a document; for the same doors the same, without making it."""
    return Document.of(make(site, doors))
