"""Paths into JSON, a part of RFC 9535 that takes time in proportion to what it selects, and RFC 6901. Pure.

`$.items[0].name`, `items[2:5]`, `$.items[*]['id','name']`, `$['odd name'][*]`, `/items/0/name`. There are no filters,
no expressions and no `..`: what searches a whole value, or runs expressions of strangers, has no bound that could be
told beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec

MAX_NODES: Final = 10_000
MAX_SELECTORS: Final = 64
"""Of all steps of a path."""
MAX_CHARS: Final = 4096
_OPEN: Final = re.compile(r"\.?\[\s*")
_SELECTOR: Final = re.compile(
    r"""(?: (?P<all>\*)
        | (?P<from>-?\d{1,9})?\s*:\s*(?P<to>-?\d{1,9})?(?:\s*:\s*(?P<by>-?\d{1,9})?)? | (?P<index>-?\d{1,9})
        | '(?P<single>(?:[^'\\]|\\.)*)' | "(?P<double>(?:[^"\\]|\\.)*)" ) \s*(?P<end>[,\]])\s*""",
    re.VERBOSE,
)
_DOTTED: Final = re.compile(r"""\.(?:(?P<every>\*)|(?P<name>[^.\[\]\s'"*]+))""")
_INDEX: Final = re.compile(r"0|[1-9]\d{0,8}")
HOW: Final = "write names and places as in $.items[0].name, or $.items[0:10]"

Selector = str | int | slice
Step = tuple[Selector, ...]
"""One selector, or several in one pair of brackets (RFC 9535 section 2.5.1)."""
Place = tuple[str | int, ...]
"""Where a value stands: the names and indices that lead to it."""
EVERY: Final = slice(None)
"""All members of an object, or all elements of an array."""


class BadPath(ValueError):
    """It is no path that is read here, or nothing is there, or too much; the text says which."""


class Path(msgspec.Struct, frozen=True):
    """`pointer`: its steps are names, which mean places in an array, too."""

    steps: tuple[Step, ...]
    pointer: bool = False

    @property
    def selectors(self) -> int:
        return sum(map(len, self.steps))

    @property
    def is_singular(self) -> bool:
        return not self.has_choices and not any(isinstance(step[0], slice) for step in self.steps)

    @property
    def has_choices(self) -> bool:
        """Whether a step has several selectors: what they select cannot be told apart in one list."""
        return any(len(step) > 1 for step in self.steps)


def read(text: str) -> Path:
    """Raises `BadPath`."""
    if len(text) > MAX_CHARS:
        raise BadPath(f"the path has {len(text)} characters, {MAX_CHARS} are the most")
    text = text.strip()
    if text.startswith("/"):
        parts = [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]
        return Path(_few([(part,) for part in parts]), pointer=True)
    text = text.removeprefix("$")
    if text and text[0] not in ".[":
        text = f".{text}"
    steps, at = list[Step](), 0
    while at < len(text):
        step, end = _read_step(text, at)
        if not step:
            raise BadPath(f"the path is not understood from {text[at : at + 40]!r} on; {HOW}")
        steps.append(step)
        at = end
    return Path(_few(steps))


def select(value: Any, path: Path) -> Any:
    """Return what stands at a path; a list, if it has places for many. Raises `BadPath` where nothing does."""
    found = [node for _, node in find(value, path)]
    return found[0] if path.is_singular else found


def find(value: Any, path: Path) -> list[tuple[Place, Any]]:
    """Return what stands at a path, each with its place. Raises `BadPath` where nothing does, or too much."""
    nodes: list[tuple[Place, Any]] = [((), value)]
    shown = "$"
    for step in path.steps:
        nodes = list(islice(_all_below(nodes, step, path.pointer), MAX_NODES + 1))
        if not nodes:
            raise BadPath(f"nothing is at {_spell(step)} of {shown}: {_what_is(value)}")
        if len(nodes) > MAX_NODES:
            raise BadPath(f"the path selects over {MAX_NODES} values; use a range, as in [0:10]")
        if len(step) > 1:  # a place that it names twice is there once, else steps would multiply what there is
            nodes = [*dict(nodes).items()]
        value = nodes[0][1]
        shown += _spell(step)
    return nodes


def _few(steps: list[Step]) -> tuple[Step, ...]:
    if (there := sum(map(len, steps))) > MAX_SELECTORS:
        raise BadPath(f"the path has {there} names and places, {MAX_SELECTORS} are the most")
    return tuple(steps)


def _read_step(text: str, at: int) -> tuple[Step, int]:
    """Return the step that begins there, and where it ends; none for what is no step."""
    if match := _DOTTED.match(text, at):
        return (EVERY if match["every"] else match["name"],), match.end()
    step, match = list[Selector](), _OPEN.match(text, at)
    while match is not None and (match := _SELECTOR.match(text, match.end())):
        step.append(_selector(match))
        if match["end"] == "]":
            return tuple(step), match.end("end")
    return (), at


def _selector(match: re.Match[str]) -> Selector:
    quoted = match["single"] if match["single"] is not None else match["double"]
    if quoted is not None:
        return re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
    if match["index"]:
        return int(match["index"])
    return slice(*(int(bound) if bound else None for bound in (match["from"], match["to"], match["by"])))


def _all_below(nodes: list[tuple[Place, Any]], step: Step, pointer: bool) -> Iterator[tuple[Place, Any]]:
    for place, node in nodes:
        for selector in step:
            for key in _keys(node, selector, pointer):
                yield (*place, key), node[key]


def _keys(node: Any, selector: Selector, pointer: bool) -> Any:
    """Return the names or indices that a selector means of a value."""
    match node:
        case dict() if isinstance(selector, str):
            return [selector] if selector in node else []
        case dict() if selector == EVERY:
            return node
        case list() if isinstance(selector, slice):
            return range(len(node))[selector] if selector.step != 0 else []
        case list() if isinstance(selector, int):
            return [selector % len(node)] if -len(node) <= selector < len(node) else []
        case list() if pointer and _INDEX.fullmatch(str(selector)):
            return range(len(node))[int(str(selector)) :][:1]
    return []


def _spell(step: Step) -> str:
    return f"[{','.join(map(_spell_one, step))}]"


def _spell_one(selector: Selector) -> str:
    if not isinstance(selector, slice):
        return str(selector) if isinstance(selector, int) else repr(selector[:40])
    if selector == EVERY:
        return "*"
    by = "" if selector.step is None else f":{selector.step}"
    return f"{'' if selector.start is None else selector.start}:{'' if selector.stop is None else selector.stop}{by}"


def _what_is(value: Any) -> str:
    if isinstance(value, dict):
        names = ", ".join(repr(name[:40]) for name in [*value][:10])
        return f"that is an object with {names}{' and more' if len(value) > 10 else ''}" if value else "that is {}"
    return f"that is an array of {len(value)}" if isinstance(value, list) else "that is no object and no array"
