"""How generously the arguments of the two meta-tools about resources are read. Pure. See `metatools`."""

from __future__ import annotations

import msgspec

from actors.catalogue.names.naming import URI_SCHEME, split_resource
from actors.catalogue.names.resolution import MAX_PATH_CHARS
from actors.search.language.text import squash
from supervisor.metatools.arguments.tools import (
    MAX_LISTED,
    QUERY_KEYS,
    SERVER_KEYS,
    cursor,
    invalid,
    members,
    said_once,
    short,
    text_list,
)
from supervisor.metatools.definitions import LIST_RESOURCES, READ_RESOURCE
from supervisor.metatools.inventory import Position
from supervisor.metatools.lenient_json import first, holds_object, is_prose, plain

URI_KEYS = ("uri", "resource_uri", "resource", "path")


class ResourceQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which resources to list. No `servers`: of all. `words`: all of them must be there."""

    words: tuple[str, ...] = ()
    servers: frozenset[str] = frozenset()
    after: Position | None = None


def list_resources(arguments: msgspec.Raw) -> ResourceQuery:
    """Read the arguments of `list_mcp_resources`. Raises `InvalidArguments`."""
    short(LIST_RESOURCES, arguments)
    given = {QUERY_KEYS[0]: arguments} if is_prose(arguments) else members(LIST_RESOURCES, arguments)
    servers = text_list(given, "servers", SERVER_KEYS, MAX_PATH_CHARS, LIST_RESOURCES)
    words = " ".join(text_list(given, "queries", QUERY_KEYS, tool=LIST_RESOURCES)).casefold().split()
    return ResourceQuery(
        words=tuple(word for word in words if word != "*")[:MAX_LISTED],
        servers=frozenset(filter(None, map(str.strip, servers))),
        after=cursor(LIST_RESOURCES, given),
    )


def read_resource(arguments: msgspec.Raw) -> str:
    """Read the arguments of `read_mcp_resource`. Raises `InvalidArguments`."""
    short(READ_RESOURCE, arguments)
    text = plain(arguments)
    alone = is_prose(arguments) and ("|" in text or text.lstrip().startswith(URI_SCHEME))
    given = {URI_KEYS[0]: arguments} if alone else members(READ_RESOURCE, arguments)
    outer = given
    if holds_object(given.get("arguments")):
        given = members(READ_RESOURCE, given["arguments"])
    uri, server = first(given, URI_KEYS), said_once(READ_RESOURCE, SERVER_KEYS, given, outer)
    if not isinstance(uri, str) or not uri.strip():
        raise invalid(READ_RESOURCE, "'uri' must be a string such as 'docs|file:///readme.md'", given)
    uri, beside = uri.strip(), server.strip() if isinstance(server, str) else ""
    named = (split_resource(uri) or ("", ""))[0]
    if not beside or squash(named) == squash(beside):
        return uri
    if named and not any(sign in named for sign in ":/"):  # else the `|` is the URI's own
        raise invalid(READ_RESOURCE, f"'uri' is of server {named[:64]!r}, and beside it stands another", given)
    return f"{beside}|{uri}"
