"""Paths into JSON, a part of RFC 9535 that takes time in proportion to what it selects, and RFC 6901. Pure.

`$.items[0].name`, `items[2:5]`, `$['odd name'][*]`, `/items/0/name`. There are no filters, no expressions and no `..`:
what searches a whole value, or runs expressions of strangers, has no bound that could be told beforehand.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

MAX_NODES: Final = 10_000
MAX_STEPS: Final = 64
_STEP: Final = re.compile(
    r"""\.?\[\s*(?:
        (?P<all>\*) | (?P<from>-?\d{1,9})?\s*(?P<colon>:)\s*(?P<to>-?\d{1,9})? | (?P<index>-?\d{1,9})
        | '(?P<single>(?:[^'\\]|\\.)*)' | "(?P<double>(?:[^"\\]|\\.)*)"
    )\s*\] | \.(?P<every>\*) | \.(?P<name>[^.\[\]\s'"*]+)""",
    re.VERBOSE,
)
_INDEX: Final = re.compile(r"0|[1-9]\d{0,8}")
HOW: Final = "write names and places as in $.items[0].name, or $.items[0:10]"

Step = str | int | slice
EVERY: Final = slice(None)
"""All members of an object, or all elements of an array."""


class BadPath(ValueError):
    """It is no path that is read here, or nothing is there, or too much; the text says which."""


class Path(msgspec.Struct, frozen=True):
    """`pointer`: its steps are names, which mean places in an array, too."""

    steps: tuple[Step, ...]
    pointer: bool = False

    @property
    def is_singular(self) -> bool:
        return not any(isinstance(step, slice) for step in self.steps)


def read(text: str) -> Path:
    """Raises `BadPath`."""
    text = text.strip()
    if text.startswith("/"):
        steps: list[Step] = [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]
        return Path(_few(steps), pointer=True)
    text = text.removeprefix("$")
    if text and text[0] not in ".[":
        text = f".{text}"
    steps, place = [], 0
    while place < len(text):
        match = _STEP.match(text, place)
        if match is None:
            raise BadPath(f"the path is not understood from {text[place : place + 40]!r} on; {HOW}")
        steps.append(_step(match))
        place = match.end()
    return Path(_few(steps))


def select(value: Any, path: Path) -> Any:
    """Return what stands at a path; a list, if it has places for many. Raises `BadPath` where nothing does."""
    nodes, shown = [value], "$"
    for step in path.steps:
        nodes = [below for node in nodes for below in _below(node, step, path.pointer)]
        if not nodes:
            raise BadPath(f"nothing is at {_spell(step)} of {shown}: {_what_is(value)}")
        if len(nodes) > MAX_NODES:
            raise BadPath(f"the path selects over {MAX_NODES} values; use a range, as in [0:10]")
        value = nodes[0]
        shown += _spell(step)
    return nodes[0] if path.is_singular else nodes


def _few(steps: list[Step]) -> tuple[Step, ...]:
    if len(steps) > MAX_STEPS:
        raise BadPath(f"the path has {len(steps)} steps, {MAX_STEPS} are the most")
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    quoted = match["single"] if match["single"] is not None else match["double"]
    if quoted is not None:
        return re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
    if match["name"]:
        return match["name"]
    if match["index"]:
        return int(match["index"])
    return slice(*(int(bound) if bound else None for bound in (match["from"], match["to"])))


def _below(node: Any, step: Step, pointer: bool) -> list[Any]:
    match node:
        case dict() if isinstance(step, str):
            return [node[step]] if step in node else []
        case dict() if step == EVERY:
            return list(node.values())
        case list() if isinstance(step, slice):
            return node[step]
        case list() if isinstance(step, int):
            return [node[step]] if -len(node) <= step < len(node) else []
        case list() if pointer and _INDEX.fullmatch(str(step)):
            return node[int(str(step)) :][:1]
    return []


def _spell(step: Step) -> str:
    if isinstance(step, slice):
        return "[*]" if step == EVERY else f"[{'' if step.start is None else step.start}:{step.stop or ''}]"
    return f"[{step}]" if isinstance(step, int) else f"[{step[:40]!r}]"


def _what_is(value: Any) -> str:
    if isinstance(value, dict):
        names = ", ".join(repr(name[:40]) for name in [*value][:10])
        return f"that is an object with {names}{' and more' if len(value) > 10 else ''}" if value else "that is {}"
    return f"that is an array of {len(value)}" if isinstance(value, list) else "that is no object and no array"
