"""Of a result only what its caller picked by JSON paths, and what that leaves out. Pure.

One path gives what stands there: a value, or a list where it has places for many. Several paths, or several names in
one step, give the result in its own shape with nothing else in it: a row keeps its names, so none is taken for
another's where some rows lack a member. What of the paths is not there is told with the names that are.

A result that is no JSON, and one of which no path finds anything, stays whole: the tool ran, and may not run again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from actors.errors import InvalidArguments
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.lenient_json import plain, texts
from supervisor.metatools.texts import escape
from supervisor.service.results.cutting import STRUCTURED, Apart, is_light, take_apart, tokens_of, unquote

# Paths into JSON, a part of RFC 9535 that takes time in proportion to what it selects, and RFC 6901.
#
# `$.items[0].name`, `items[2:5]`, `$.items[*]['id','name']`, `$['odd name'][*]`, `/items/0/name`. There are no filters,
# no expressions and no `..`: what searches a whole value, or runs expressions of strangers, has no bound that could be
# told beforehand.

MAX_NODES: Final = 10_000
MAX_PATH_SELECTORS: Final = 64
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
    if (there := sum(map(len, steps))) > MAX_PATH_SELECTORS:
        raise BadPath(f"the path has {there} names and places, {MAX_PATH_SELECTORS} are the most")
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


MAX_PATHS: Final = 20
MAX_SELECTORS: Final = 128
"""Of all paths: each may look at as many values as a path selects."""
MAX_BYTES: Final = 16_384
"""Of the paths, as they were written."""
META_KEY: Final = "mcpvisor/picked"
"""In `_meta` of what was picked: how many bytes that has, and how many the result had."""
_APART: Final = re.compile(r"\s*,\s*(?=\$)")
_LEVELS, _NAMES, _NAME_CHARS, _COMPARED = 6, 8, 40, 100
_MISSING, _MISSING_CHARS = 3, 600
"""So many paths of which nothing is there are told of, by name and with what is there instead."""

Tree = dict[str | int, Any] | None
"""What of a value is picked: all of it, or of some members and elements what is picked of them."""


class Picked(msgspec.Struct, frozen=True, eq=False):
    """`body` is the result as it goes on. `told` says what was left out, or why nothing was picked; `whole`: of what.

    `tokens`: about how many that spares a model.
    """

    body: bytes
    told: str = ""
    whole: Apart | None = None
    tokens: int = 0


def read_picks(raw: msgspec.Raw) -> tuple[Path, ...]:
    """Read the paths of a call; none for nothing. Raises `InvalidArguments`."""
    if not bytes(raw):
        return ()
    if len(raw) > MAX_BYTES:
        raise InvalidArguments(f"'pick' has {len(raw)} bytes, {MAX_BYTES} are the most; nothing was called")
    value = plain(raw)
    if isinstance(value, str) and value.lstrip()[:1] == "[" and isinstance(listed := _listed(value), list):
        value = listed
    said = texts(value)
    if value not in (None, "", []) and not said:
        raise InvalidArguments(f"'pick' is a list of JSON paths; {HOW}")
    parts = dict.fromkeys(part for text in said if text.strip() for part in _APART.split(text.strip()))
    if len(parts) > MAX_PATHS:
        text = f"'pick' has {len(parts)} paths, {MAX_PATHS} are the most; $.items[*]['a','b'] has several names"
        raise InvalidArguments(text)
    try:
        wanted = tuple(map(read, parts))
    except BadPath as error:
        raise InvalidArguments(f"'pick': {error}; nothing was called") from None
    if (there := selectors(wanted)) > MAX_SELECTORS:
        text = f"'pick' has {there} names and places, {MAX_SELECTORS} are the most; nothing was called"
        raise InvalidArguments(text)
    return wanted


def selectors(wanted: Sequence[Path]) -> int:
    """Return how many there are in all paths: by so much more than to be read once a result costs."""
    return sum(path.selectors for path in wanted)


def _listed(text: str) -> Any:
    return json.read_or(json.VALUE, text.encode(errors="replace"), None)


def pick(body: bytes, wanted: Sequence[Path]) -> Picked:
    """Return of the result of a call what is wanted; one that is none, or that says it failed, as it is."""
    apart = take_apart(body)
    if apart is None or "content" not in apart.members or bytes(apart.members.get("isError", b"")) == b"true":
        return Picked(body)
    try:
        readings = [*_readings(apart)]
    except BadPath as error:
        return Picked(body, f"Nothing was picked: {error}.")
    if not readings:
        return Picked(body, "Nothing was picked: the result is no JSON.")
    tries = [_Try(value, wanted) for value in readings]
    best = max(tries, key=lambda each: len(each.found))  # the first of equals
    missing = "; ".join(text[:_MISSING_CHARS] for text in best.missing[:_MISSING])
    if (more := len(best.missing) - _MISSING) > 0:
        missing = f"{missing}; and {more} more"
    if not best.found:
        return Picked(body, f"Nothing was picked: {missing}.")
    value, size = best.picked(), len(apart.structured or apart.said)
    text = value.encode(errors="replace") if isinstance(value, str) else encode(value)
    left_out = "; ".join(islice(_left_out(best.value, best.tree), _LEVELS))
    told = f"Picked {len(text):,} of {size:,} bytes. Left out: {left_out}." if left_out else ""
    told = " ".join(filter(None, (told, f"Not there: {missing}." if missing else "")))
    members: dict[str, Any] = {**apart.members, "content": [{"type": "text", "text": text.decode()}, *apart.others]}
    about = {"bytes": size, "picked_bytes": len(text)}
    members["_meta"] = {**json.members(apart.members.get("_meta")), META_KEY: about}
    if apart.structured:
        members[STRUCTURED] = {"picked": value}
    return Picked(encode(members), told, apart if left_out else None, max(0, apart.tokens - tokens_of(text)))


def with_note(body: bytes, note: str, key: str = "note") -> bytes:
    """Return a result with a line more in its structured content, as some clients show a model only that.

    What has none, or none that is an object, is returned as it is.
    """
    members = json.read_or(json.MEMBERS, body, {})
    structured = json.read_or(json.MEMBERS, members.get(STRUCTURED, b""), None)
    if structured is None:
        return body
    before = json.text_at(structured.get(key))
    return encode({**members, STRUCTURED: {**structured, key: f"{before} {note}" if before else note}})


class _Try:
    """What the paths find in one reading of a result."""

    def __init__(self, value: Any, wanted: Sequence[Path]) -> None:
        self.value = value
        self._wanted = wanted
        self.found = list[list[tuple[Place, Any]]]()
        self.missing = list[str]()
        left = MAX_NODES
        for path in wanted:
            try:
                found = find(value, path)
            except BadPath as error:
                self.missing.append(str(error))
                continue
            if len(found) > left:
                self.missing.append(f"the paths select over {MAX_NODES} values; use a range, as in [0:10]")
                continue
            left -= len(found)
            self.found.append(found)
        self.tree = _tree(place for found in self.found for place, _ in found)

    def picked(self) -> Any:
        (first, *more) = self._wanted
        if more or first.has_choices:
            return _build(self.value, self.tree)
        nodes = [node for _, node in self.found[0]]
        return nodes[0] if first.is_singular else nodes


def _readings(apart: Apart) -> Iterator[Any]:
    """Yield what a path may be meant of: the structured content, what it wraps, the texts that are JSON.

    Structured content had to be an object, so some servers wrap it in one with a single member, and their texts do not.
    Several texts are a list of what each of them holds. Raises `BadPath` for what is too large.
    """
    if not (is_light(apart.structured) and is_light(apart.said)) or apart.size > len(apart.said):
        raise BadPath("the result is too large to be read as JSON")
    structured = json.read_or(json.VALUE, apart.structured, None) if apart.structured else None
    if isinstance(structured, dict | list):
        yield structured
    if isinstance(structured, dict) and len(structured) == 1:
        yield from (value for value in structured.values() if isinstance(value, dict | list))
    values = [json.read_or(json.VALUE, unquote(text)[0], None) for text in apart.texts]
    held = [value for value in values if isinstance(value, dict | list)]
    if held:
        yield held[0] if len(held) == 1 else held


def _tree(places: Iterator[Place]) -> Tree:
    root: dict[str | int, Any] = {}
    for place in places:
        if not place:
            return None
        node = root
        for key in place[:-1]:
            node = node.setdefault(key, {})
            if node is None:  # all of it is picked by another path
                break
        else:
            node[place[-1]] = None
    return root


def _build(value: Any, tree: Tree) -> Any:
    if tree is None:
        return value
    if isinstance(value, dict):
        return {key: _build(value[key], below) for key, below in tree.items()}
    return [_build(value[key], tree[key]) for key in sorted(tree)]


class _Level:
    """What is there, and what of it is picked, at all places that differ only in their indices."""

    def __init__(self) -> None:
        self.there = self.picked = 0
        self.names = dict[str, None]()
        self.taken = set[str | int]()

    def add(self, value: Any, tree: dict[str | int, Any]) -> None:
        if isinstance(value, list):
            self.there += len(value)
            self.picked += len(tree)
            return
        self.names.update(dict.fromkeys(islice(value, _COMPARED)))
        self.taken.update(tree)

    def told(self) -> str:
        if self.there > self.picked:
            return f"{self.there - self.picked:,} of {self.there:,} elements"
        names = [name for name in self.names if name not in self.taken]
        shown = [escape(name[:_NAME_CHARS]) for name in names[:_NAMES]]
        more = len(names) - len(shown)
        return f"{', '.join(shown)}{f' and {more} more' if more else ''}"


def _left_out(value: Any, tree: Tree) -> Iterator[str]:
    """Yield what of each level of a value is not picked, from the top."""
    nodes = [("$", value, tree)]
    while nodes:
        levels, below = dict[str, _Level](), list[tuple[str, Any, Tree]]()
        for where, each, taken in nodes:
            if taken is None:
                continue
            levels.setdefault(where, _Level()).add(each, taken)
            inner = isinstance(each, list)
            below += [(f"{where}[*]" if inner else f"{where}.{key}", each[key], taken[key]) for key in taken]
        yield from (
            f"of {escape(where[:_COMPARED])} {said}" for where, level in levels.items() if (said := level.told())
        )
        nodes = below
