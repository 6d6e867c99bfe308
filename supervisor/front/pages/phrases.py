"""The page about sentences by which people ask for tools (`/api/phrases`): how many tools have some, of which source.

Of one server it shows the sentences themselves.

They are for operators: neither a model nor a person who searches is shown any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Annotated, Any, Final, get_args

import msgspec

from actors.catalogue.criteria import Text
from actors.catalogue.documents import Source, digest_of, parameter_names
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Entry
from supervisor import operations
from supervisor.front.pages.performing import performs
from supervisor.front.pages.view import View
from supervisor.host.workbench import beside

_MAX_ROWS: Final = 100


class PhrasesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`server`: whose tools are listed. `told`: with what a model would be told of each."""

    server: Text = ""
    told: bool = False
    limit: Annotated[int, msgspec.Meta(ge=1, le=_MAX_ROWS)] = _MAX_ROWS
    offset: Annotated[int, msgspec.Meta(ge=0)] = 0


@performs(operations.PHRASES)
async def phrases(view: View, query: PhrasesQuery) -> bytes:
    """Show how many tools of each server have sentences by which people ask for them, by their source: a file of
    yours, the phrase book, a model of yours, models of clients. `describing` says how far the model is, or these
    are. With `server`, the sentences of its tools.
    """
    entries = view.catalogue.value.entries
    if query.server:
        view.control.check(query.server)
        entries = {name: entry for name, entry in entries.items() if name == query.server}
    page: dict[str, Any] = {"describing": view.describing()}
    hide = view.deployment.value.mask(query.server)
    return await beside(partial(_encode, page, [*entries.values()], query, hide))


def _encode(page: dict[str, Any], entries: Sequence[Entry], asked: PhrasesQuery, hide: Callable[[str], str]) -> bytes:
    page["servers"] = [_counts(entry) for entry in entries]
    if asked.server:
        tools = [tool for entry in entries for tool in _rows(entry, asked, hide)]
        page |= {"tools": tools, "total": sum(len(entry.offer.tools) for entry in entries), "offset": asked.offset}
    return msgspec.json.encode(page)


def _counts(entry: Entry) -> dict[str, Any]:
    counted = Counter(entry.phrases(entry.server, tool.own or tool).source or "none" for tool in entry.offer.tools)
    sources = (*filter(None, get_args(Source)), "none")
    return {"server": entry.server, "tools": len(entry.offer.tools), **{name: counted[name] for name in sources}}


def _rows(entry: Entry, asked: PhrasesQuery, hide: Callable[[str], str]) -> Iterator[dict[str, Any]]:
    for tool in islice(entry.offer.tools, asked.offset, asked.offset + asked.limit):
        own = tool.own or tool
        said = entry.phrases(entry.server, own)
        row = {"tool": own.name, "source": said.source, "sentences": said.sentences, "suspicious": bool(own.alarms)}
        defined = {"digest": digest_of(own).hex(), "parameters": sorted(parameter_names(own))}
        yield {**row, **defined, **({"told": _told(own, hide)} if asked.told else {})}


def _told(tool: Tool, hide: Callable[[str], str]) -> dict[str, Any]:
    from supervisor.phrases.asking import told_of  # with rules that no daemon needs whose model is nobody

    told = told_of(tool)
    told["parameters"] = {hide(name): hide(described) for name, described in told["parameters"].items()}
    return told | {name: hide(told[name]) for name in ("name", "title", "description")}
