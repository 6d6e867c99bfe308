"""Whether a `SKILL.md` begins with what its entry says (SEP-2640, "Frontmatter Verification"). Pure.

An entry has the front matter as JSON, made by its server's reader of YAML. Readers differ in what a plain scalar is:
`yes`, `012` and `2026-01-01` are one thing by YAML 1.1 and another by 1.2. So a scalar is compared as it is written,
and fits where one of them could have read it so: a skill must not be refused for the library that its server has.

It comes from a stranger. No value is made of it: only nodes are, an alias is the node that it stands for, and all that
is walked over is the entry, which is known to be small. The reader in Python ends at a depth where that in C would take
the process with it.
"""

from __future__ import annotations

import re
from typing import Any, Final

MAX_BYTES: Final = 16_384
"""Of front matter; a longer one is taken for another one. The Agent Skills specification has 1,024 for the longest
text."""
FENCES: Final = 16
"""Of the lines around it."""
MAX_OPEN: Final = 500
"""So many brackets: the reader takes the square of them."""
_FRONT: Final = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_DAY: Final = re.compile(r"\d{4}-\d\d?-\d\d?")
_BREAKS: Final = str.maketrans("\x85\u2028\u2029", "   ")
"""These end a line by YAML 1.1 alone, so they are blanks on both sides."""
_NOTHING: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {True: ("true", "yes", "on", "y"), False: ("false", "no", "off", "n")}


def is_that(data: bytes, said: Any) -> bool:
    """Say whether a `SKILL.md` begins with front matter that is `said`, the object of its entry. Takes milliseconds."""
    import yaml  # type: ignore[import-untyped]  # it has no types; here, as most daemons have no skill to read

    head = data[: MAX_BYTES + FENCES].decode(errors="replace")
    if (front := _FRONT.match(head)) is None or len(text := front[1] or "") > MAX_BYTES:
        return False
    if text.count("[") + text.count("{") > MAX_OPEN:
        return False
    try:
        node = yaml.compose(text.translate(_BREAKS), Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return False
    return _fits(node, said)


def _fits(node: Any, said: Any) -> bool:
    """Say whether a node is a value of JSON; as deep as that one."""
    kind = getattr(node, "id", "")
    if isinstance(said, dict):
        if kind != "mapping" or len(node.value) != len(said):
            return False
        below = {key.value: value for key, value in node.value if key.id == "scalar"}
        return below.keys() == said.keys() and all(_fits(below[name], value) for name, value in said.items())
    if isinstance(said, list):
        there = kind == "sequence" and len(node.value) == len(said)
        return there and all(_fits(item, value) for item, value in zip(node.value, said, strict=True))
    return kind == "scalar" and _fits_scalar(node.value, said, plain=node.style is None)


def _fits_scalar(text: str, said: Any, *, plain: bool) -> bool:
    if isinstance(said, str):
        return text == said.translate(_BREAKS) or (plain and (day := _day(text)) != "" and day == _day(said))
    if not plain:
        return False
    if said is None:
        return text in _NOTHING
    if isinstance(said, bool):
        return text.lower() in _BOOLEANS[said]
    return said in _numbers(text)


def _day(text: str) -> str:
    """Return the day that a text begins with: of a moment the hour depends on who wrote it down."""
    found = _DAY.match(text)
    return found[0] if found else ""


def _numbers(text: str) -> list[float]:
    """Return the numbers that a plain scalar can be: with a zero in front it is octal, or is not."""
    digits, found = text.replace("_", ""), list[float]()
    for read in (float, int, lambda each: int(each, 0), lambda each: int(each, 8)):
        try:
            found.append(read(digits))
        except (ValueError, OverflowError):
            continue
    return found
