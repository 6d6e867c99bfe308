"""Which further tools the servers have that a page begins with, by name alone: what comes next is often there. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from actors.catalogue.names.naming import tool_path
from actors.catalogue.snapshot import Catalogue
from actors.search.document import Hit
from supervisor.metatools.servers.unavailable import FITS
from supervisor.metatools.texts import clean, estimate_tokens

SHARE: Final = 50
"""All these names have this part of the tokens of an answer, and no more than"""
MAX_TOKENS: Final = 40
_SERVERS, _BEST = 2, 3
_NAME_CHARS: Final = 60
_MORE_TOKENS: Final = 5


def other_tools(seen: Catalogue, hits: Sequence[Hit], shown: Collection[str], tokens: int) -> str:
    """Return `github: fork, search_code and 70 more; git: log`, within so many tokens; empty where there are none.

    They are of the servers of the first hits, if these fit, are not among the paths that are `shown`, and begin with
    those that were found, too.
    """
    best = hits[:_BEST]
    fitting = (hit.document.server for hit in best if hit.document.kind == "tool" and hit.distance < FITS)
    servers = [*dict.fromkeys(fitting)][:_SERVERS]
    told = (_of_server(seen, server, hits, shown, tokens // len(servers)) for server in servers)
    return "; ".join(filter(None, told))


def _of_server(seen: Catalogue, server: str, hits: Sequence[Hit], shown: Collection[str], tokens: int) -> str:
    tools = seen.entries[server].tools
    found = (hit.document.name for hit in hits if hit.document.server == server and hit.document.name in tools)
    left = [name for name in dict.fromkeys([*found, *tools]) if clean(tool_path(server, name)) not in shown]
    tokens -= estimate_tokens(server) + _MORE_TOKENS
    names = list[str]()
    for name in left:
        written = clean(name[:_NAME_CHARS])
        tokens -= estimate_tokens(f", {written}")
        if tokens < 0:
            break
        names.append(written)
    more = f" and {len(left) - len(names)} more" if len(left) > len(names) else ""
    return f"{server}: {', '.join(names)}{more}" if names else ""
