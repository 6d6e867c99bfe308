"""The names under which clients see tools, prompts and resources. What a name means is in `resolution`.

Outside a tool is `server:tool`; `server-tool` is the namespaced name of the documents. The first `:` splits (server
names have none), so `a:b` on server `s` is `s:a:b`. Resources are `server|uri`, split at the first `|`, because URIs
have colons. Where MCP demands a URI (`resources/list`), it is `mcp://server/uri` instead: a URI has no `|`.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

URI_SCHEME = "mcp://"


def tool_path(server: str, tool: str) -> str:
    return f"{server}:{tool}"


def namespaced_name(server: str, name: str) -> str:
    return f"{server}-{name}"


def resource_path(server: str, uri: str) -> str:
    return f"{server}|{uri}"


def resource_uri(server: str, uri: str) -> str:
    return f"{URI_SCHEME}{quote(server, safe='')}/{uri}"


def split_resource(path: str) -> tuple[str, str] | None:
    """Split a resource's path or URI; None if it is neither."""
    if path.startswith(URI_SCHEME):
        quoted, bar, uri = path.removeprefix(URI_SCHEME).partition("/")
        server = unquote(quoted)
    else:
        server, bar, uri = path.partition("|")
    return (server, uri) if bar and server and uri else None
