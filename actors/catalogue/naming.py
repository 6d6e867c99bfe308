"""Names that a client may write for a tool or a resource, and what they mean.

Outside a tool is `server:tool`; `server-tool` is the namespaced name of the documents; models also write
`mcp__server__tool` and `server/tool`. The first `:` splits (server names have none), so `a:b` on server `s` is `s:a:b`.
Resources are `server|uri`, split at the first `|`, because URIs have colons. A bare tool name never resolves silently.
Where MCP demands a URI (`resources/list`), it is `mcp://server/uri` instead: a URI has no `|`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from urllib.parse import quote, unquote

URI_SCHEME = "mcp://"
SEPARATORS = (":", "-", "/", ".", "__")


def tool_path(server: str, tool: str) -> str:
    """Return the path of a tool as clients see it."""
    return f"{server}:{tool}"


def namespaced(server: str, name: str) -> str:
    """Return the namespaced name of a tool or prompt."""
    return f"{server}-{name}"


def resource_path(server: str, uri: str) -> str:
    """Return the URI of a resource as clients see it."""
    return f"{server}|{uri}"


def resource_uri(server: str, uri: str) -> str:
    """Return the URI of a resource in MCP's own lists (RFC 3986)."""
    return f"{URI_SCHEME}{quote(server, safe='')}/{uri}"


def split_resource(path: str) -> tuple[str, str] | None:
    """Split a resource's path or URI; None if it is neither."""
    if path.startswith(URI_SCHEME):
        quoted, bar, uri = path.removeprefix(URI_SCHEME).partition("/")
        server = unquote(quoted)
    else:
        server, bar, uri = path.partition("|")
    return (server, uri) if bar and server and uri else None


def readings(path: str, servers: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each (server, tool) that `path` can mean, the most literal first; only servers that exist."""
    path = path.strip()
    server, colon, tool = path.partition(":")
    if colon and tool and server in servers:
        yield server, tool
    bare = path.removeprefix("mcp__") if path.startswith("mcp__") else path
    # The longest server name first: `a-b` is not tool `b-...` of server `a` when a server `a-b` exists.
    for name in sorted(servers, key=len, reverse=True):
        for separator in SEPARATORS:
            if bare.startswith(name + separator) and len(bare) > len(name) + len(separator):
                yield name, bare[len(name) + len(separator) :]
