"""How values are written for people: states, spans of time, sizes, numbers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any, Final

import msgspec

from actors.catalogue.diff import Change
from actors.command_line import command
from actors.facts import ApprovalsWanted, Fact, ListChange, OfLaunch, StateChange
from actors.installation import DISABLED, PER_USER, shown
from actors.launch import is_own, server_of
from supervisor.events.kinds import ElicitationAsked
from supervisor.metatools.texts import clean, escape

GLYPHS: Final = {"ok": "●", "resting": "○", "moving": "◐", "wanting": "▲", "failed": "✕", "off": "—"}
"""The mark of each kind of state."""
WANTS_YOU: Final = GLYPHS["wanting"]
_NONE: Final = "-"
MAX_CELL: Final = 300
MAX_NAMES: Final = 5
MAX_NAME: Final = 60
"""Of one of several in a line."""
_MAX_DEFINED: Final = 500
_LEAST_PERCENT: Final = 0.1
_HALF_A_DAY_S: Final = 43_200
_KINDS: Final = {
    "requires_reauth": "wanting",
    "awaiting_user_config": "resting",
    PER_USER: "resting",
    "offline": "failed",
    "error": "failed",
    "permanently_failed": "failed",
    DISABLED: "off",
}
_KINDS_OF_STATES: Final = {
    "ready": "ok",
    "dormant": "resting",
    "failed": "failed",
    "respawning": "failed",
    "stopped": "off",
}


def state_of(row: dict[str, Any]) -> str:
    """Return the word for how a server is, that all pages and commands have for it; of an instance, its state."""
    return shown(row).replace("_", " ") if "status" in row else str(row.get("state", "unknown"))


def life_of(row: dict[str, Any]) -> str:
    """Return how a server is, and what its process does."""
    word = state_of(row)
    return word if word == DISABLED else f"{word}, {row['state']}"


def is_lacking(row: dict[str, Any]) -> bool:
    """Say whether somebody has yet to give a value: `lacking` has whom, where the page knows."""
    return row.get("status") == "awaiting_user_config" and row.get("lacking") != []


def kind_of(row: dict[str, Any]) -> str:
    """Return what the state of a server means for a person: `ok`, `resting`, `moving`, `wanting`, `failed` or `off`."""
    state = str(row.get("state"))
    if "status" not in row:
        return _KINDS_OF_STATES.get(state, "moving")
    word = shown(row)
    if is_lacking(row):
        return "wanting"
    if word == "online":  # one that died a moment ago is started again, and calls wait for that
        return _KINDS_OF_STATES[state] if state in ("ready", "dormant") else "moving"
    return _KINDS.get(word, "moving")


def glyph_of(row: dict[str, Any]) -> str:
    return GLYPHS[kind_of(row)]


def display_name(server: str, users: Sequence[str] | None = None) -> str:
    """Return the name of a server. That of a launch says for whom it is, where that is known, and not its digest."""
    if not is_own(server) or users is None:
        return server
    return f"{server_of(server)}, for {names(users) if users else 'nobody now'}"


def names(every: Sequence[str], most: int = MAX_NAMES) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return (text(", ".join(every[:most])) or _NONE) + more


def is_of(fact: Fact, launch: str) -> bool:
    """Say whether a fact is about a server, and not about its state."""
    if isinstance(fact, ElicitationAsked):
        return fact.server_slug == launch
    return isinstance(fact, OfLaunch) and not isinstance(fact, StateChange) and fact.launch == launch


def told_of(fact: Fact) -> str:
    """Return what else there is to say of that: the reason, or the first of the names it is about."""
    match fact:
        case ListChange(change=change):
            parts = []
            for kind, every in (("added", change.added), ("removed", change.removed), ("changed", change.changed)):
                shown = [_with(name, ", ".join(change.fields.get(name, ()))) for name in every[:MAX_NAMES]]
                parts += [_first(kind, shown, len(every))] if every else []
            return "; ".join(parts)
        case ApprovalsWanted(tools=tools, waiting=waiting):
            shown = [_with(name, why) for name, why in islice(tools.items(), MAX_NAMES)]
            return _first("not approved", shown, waiting) if tools else ""
        case OfLaunch(reason=reason) if reason:
            return text(reason)
    return ""


def defined_by(fact: Fact) -> Iterator[str]:
    """Yield the first names whose definitions are new, if a fact is a list that changed."""
    change = fact.change if isinstance(fact, ListChange) else Change()
    return islice(chain(change.changed, change.added), _MAX_DEFINED)


def _with(name: str, more: str) -> str:
    short = name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"
    return f"{short} ({more})" if more else short


def _first(kind: str, shown: Sequence[str], count: int) -> str:
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    return f"{kind}: {', '.join(map(text, shown))}{more}"


def span(seconds: float | None) -> str:
    """Return a span of time such as `12 s`, `3 min`, `2 h`, `4 days`."""
    if seconds is None:
        return _NONE
    for size, unit in ((2 * 86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // (86_400 if unit == 'days' else size))} {unit}"
    return f"{max(0, int(seconds))} s"


def milliseconds(value: float | None) -> str:
    if value is None:
        return _NONE
    if value < 1000:
        return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"
    return f"{value / 1000:.1f} s" if value < 120_000 else span(value / 1000)


def size(value: float | None) -> str:
    """Return a number of bytes."""
    if value is None:
        return _NONE
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if value >= 10 or unit == "B" else f"{value:.1f} {unit}"


def number(value: float | None) -> str:
    return _NONE if value is None else f"{value:,.0f}"


def share(part: float, whole: float) -> str:
    """Return a share in percent; none of nothing."""
    if not whole:
        return _NONE
    percent = part / whole * 100
    if 0 < percent < _LEAST_PERCENT:
        return f"< {_LEAST_PERCENT} %"
    return f"{percent:.0f} %" if percent in (0, 100) or percent >= 10 else f"{percent:.1f} %"


def percent(value: float | None) -> str:
    return _NONE if value is None else f"{value:.0f} %" if value >= 10 or not value else f"{value:.1f} %"


def moment(value: float | None) -> str:
    """Return a moment as it is written in `datetime` of HTML, in UTC."""
    return "" if value is None else datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(value: float | None, now: float) -> str:
    """Return the time of day of the daemon's machine, with the date of what is not near to `now`."""
    if value is None:
        return _NONE
    near = abs(now - value) < _HALF_A_DAY_S
    return time.strftime("%H:%M:%S" if near else "%Y-%m-%d %H:%M:%S", time.localtime(value))


def json_text(value: object) -> str:
    """Return JSON with line ends, in which everything can be seen."""
    return "\n".join(map(escape, json.dumps(value, indent=2, ensure_ascii=False).split("\n")))


def setting(value: object) -> str:
    """Return a value of the configuration: a text as it is, any other as JSON."""
    return text(value if isinstance(value, str) else msgspec.json.encode(value).decode())


def command_line(words: Sequence[str]) -> str:
    """Return `mcpvisor WORDS` to be typed into a shell."""
    return text(command(*words))


def text(value: object) -> str:
    """Return text of a server on one line: what cannot be seen is shown as what it is, and it is not too long."""
    line = " ".join(clean(escape(str(value))).split())
    return line if len(line) <= MAX_CELL else line[: MAX_CELL - 1] + "…"
