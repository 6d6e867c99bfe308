"""What each server is for, in a line, as a model is told beside our own words. Pure.

Everything but the operator's own description was written by a server: it is cleaned, cut to a sentence, put on one line
and in quotes, so that it can be told from what we say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from actors.catalogue.snapshot import Catalogue, Entry
from actors.messages import ServerStatus
from supervisor.service.availability import is_coming, why_down
from supervisor.shown import clean, estimate_tokens, shorten

LENGTHS = (90, 40, 20)
"""Characters of a purpose, the longest that fits for all servers."""
MAX_NAME_CHARS = 64
MAX_DOWN_CHARS = 60
_LOOKED_AT = 2000
_SPACE = re.compile(r"\s+")
_TOOLS_NAMED = 3


class _Info(msgspec.Struct):
    title: msgspec.Raw = msgspec.Raw(b"")
    description: msgspec.Raw = msgspec.Raw(b"")


_info = msgspec.json.Decoder(_Info)
_text = msgspec.json.Decoder(str)


def purpose(entry: Entry, described: str = "") -> str:
    """Return what a server is for: as configured, else as it says itself, else the names of some of its tools."""
    said = (described, *_of_itself(entry), entry.offer.instructions)
    return next(filter(None, map(_line, said)), "") or _tools(entry)


def _of_itself(entry: Entry) -> tuple[str, str]:
    try:
        info = _info.decode(entry.offer.server_info)
    except (msgspec.MsgspecError, RecursionError):
        return "", ""
    title = _decoded(info.title)
    repeats = title.casefold() in (entry.server.casefold(), "")
    return _decoded(info.description), "" if repeats else title


def _decoded(raw: msgspec.Raw) -> str:
    try:
        return _text.decode(raw)[:_LOOKED_AT]
    except (msgspec.MsgspecError, RecursionError):
        return ""


def _line(text: str) -> str:
    """Return the first sentence of a text, clean and on one line."""
    plain = _SPACE.sub(" ", clean(text[:_LOOKED_AT])).strip()
    return plain.partition(". ")[0].rstrip(".")


def _tools(entry: Entry) -> str:
    names = [clean(tool.name)[:40] for tool in entry.offer.tools[:_TOOLS_NAMED]]
    count = len(entry.offer.tools)
    if not names:
        return ""
    return f"{count} tool{'s' if count > 1 else ''}: {', '.join(names)}{', ...' if count > len(names) else ''}"


def roll(
    seen: Catalogue,
    statuses: Mapping[str, ServerStatus],
    described: Mapping[str, str],
    budget_tokens: int,
    *,
    usable: bool = False,
) -> str:
    """Return the servers, each with its purpose, and why it cannot be used where it cannot; empty for none.

    Within a budget of estimated tokens: with many servers the purposes are shorter, then there are names only, then
    some of the names. `usable`: only those that can be used.
    """
    names = sorted(seen.visible if usable else seen.names.servers)
    purposes = {name: _about(seen, name, described.get(name, "")) for name in names}
    downs = {name: _down(name, seen, statuses) for name in names}
    for chars in LENGTHS:
        text = "; ".join(_told(name, purposes[name], downs[name], chars) for name in names)
        if estimate_tokens(text) <= budget_tokens:
            return text
    return _names(names, downs, budget_tokens)


def _about(seen: Catalogue, name: str, described: str) -> str:
    return purpose(seen.entries[name], described) if name in seen.entries else _line(described)


def _told(name: str, about: str, down: str, chars: int) -> str:
    quoted = f" {msgspec.json.encode(shorten(about, chars)).decode()}" if about else ""
    return f"{clean(name)[:MAX_NAME_CHARS]}{quoted}{f' ({down})' if down else ''}"


def _down(name: str, seen: Catalogue, statuses: Mapping[str, ServerStatus]) -> str:
    if name in seen.visible:
        return ""
    status = statuses.get(name)
    if name not in seen.entries and is_coming(status):
        return "being discovered"
    return why_down(status, MAX_DOWN_CHARS)


def _names(names: Iterable[str], downs: Mapping[str, str], budget_tokens: int) -> str:
    told = [clean(name)[:MAX_NAME_CHARS] + (" (down)" if downs[name] else "") for name in names]
    kept, used = 0, 8  # for what is said of the rest
    for text in told:
        used += estimate_tokens(text) + 1
        if used > budget_tokens:
            break
        kept += 1
    rest = len(told) - kept
    return ", ".join(told[:kept]) + (f"{' and ' if kept else ''}{rest} more" if rest else "")
