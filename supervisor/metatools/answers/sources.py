"""Where the ids that a call must have come from: which tool of the same server gives them. Pure.

A server that has `get_message(message_id)` mostly has `list_messages` beside it. That is told where names say it
plainly: a parameter that is an id by its name, and a tool that lists, searches or resolves just that kind of thing, and
does not ask for the same id itself. Words that the thing's name has more (`list_mail_messages`) must be in the name of
the tool that wants it, too (`get_mail_message`). Where nothing is plain, nothing is told.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Entry
from supervisor.metatools.arguments.synonyms import MAX_NAME_CHARS, words
from supervisor.metatools.texts import clean

MAX_IDS: Final = 3
MAX_WANTED: Final = 8
"""So many ids of a tool are looked for: each among all tools of its server."""
_ID: Final = "identifier"
_IDS: Final = frozenset({_ID, "ids", "uuid", "guid"})
_GIVES: Final = ("resolve", "lookup", "search", "find", "list", "query")
_GETS: Final = ("get", "fetch")
"""These give ids only of what their name has in the plural."""
_DOES: Final = frozenset(
    (
        *("add", "assign", "attach", "clear", "copy", "create", "delete", "edit", "export", "import", "move", "patch"),
        *("remove", "send", "set", "update"),
    )
)
"""Beside one of these, `list` is a thing."""


class _Giver(NamedTuple):
    """What a tool lists: the words of a thing. `rank` orders verbs, `is_id`: its name says that it gives ids."""

    thing: tuple[str, ...]
    rank: int
    is_id: bool


def sources_of_ids(entry: Entry, tool: Tool) -> dict[str, str]:
    """Return for parameters that a call of a tool must have the name of the tool that gives their ids, as shown."""
    wanted = dict(islice(((name, noun) for name in tool.required if (noun := _noun(name))), MAX_WANTED))
    if not wanted:
        return {}
    context, own = frozenset(words(tool.name[:MAX_NAME_CHARS])), frozenset(words(entry.server[:MAX_NAME_CHARS]))
    found = {name: _source(entry, tool, name, noun, context, own) for name, noun in wanted.items()}
    return dict([(clean(name), clean(source)) for name, source in found.items() if source][:MAX_IDS])


def _source(
    entry: Entry, tool: Tool, parameter: str, noun: tuple[str, ...], context: frozenset[str], own: frozenset[str]
) -> str:
    best, least = "", None
    for name, giver in _givers(tuple(entry.tools)).get(noun[-1], ()):
        if name == tool.name:
            continue
        other = entry.tools[name]
        thing = tuple(word for word in giver.thing if word not in own or word in noun)
        more = thing[: -len(noun)]
        if thing[-len(noun) :] == noun and context.issuperset(more):
            rank = -len(more), giver.rank
        elif giver.is_id and noun[-len(thing) :] == thing:
            rank = 0, giver.rank
        else:
            continue
        if any(_noun(each)[-len(noun) :] == noun for each in other.required):
            continue
        if least is None or (*rank, len(other.required), name) < least:
            best, least = name, (*rank, len(other.required), name)
    return best


@lru_cache(maxsize=64)
def _givers(names: tuple[str, ...]) -> dict[str, list[tuple[str, _Giver]]]:
    """Return which of a server's tools list something, by each word of the thing: most pages ask a server again."""
    found: dict[str, list[tuple[str, _Giver]]] = {}
    for name in names:
        if (giver := _giver(name[:MAX_NAME_CHARS])) is not None:
            for word in dict.fromkeys(giver.thing):
                found.setdefault(word, []).append((name, giver))
    return found


@lru_cache(maxsize=4096)
def _noun(parameter: str) -> tuple[str, ...]:
    """Return the words of what a parameter is the id of; none if it is no id by its name."""
    said = words(parameter[:MAX_NAME_CHARS])
    return tuple(said[:-1]) if said and said[-1] in _IDS else ()


def _giver(name: str) -> _Giver | None:
    """Return what a tool gives by its name; None if it is not one that lists."""
    said = words(name)
    verbs = [word for word in said if word in _GIVES or word in _GETS or word in _DOES]
    if len(verbs) != 1 or verbs[0] in _DOES or (verbs[0] in _GETS and not _is_plural(name)):
        return None
    thing = [word for word in said if word != verbs[0]]
    is_id = bool(thing) and thing[-1] in _IDS
    thing = thing[:-1] if is_id else thing
    return _Giver(tuple(thing), (*_GIVES, *_GETS).index(verbs[0]), is_id) if thing else None


def _is_plural(name: str) -> bool:
    return name[-1:] in "sS" and not words(name)[-1].endswith("s")
