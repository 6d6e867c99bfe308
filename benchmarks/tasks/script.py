"""The twenty tasks, and what the tools answer in them: data that is read from the files beside this one.

The answers have the shape of what the services behind the tools publish in their references, with made-up values. A
template stands for many rows: `{"$rows": 30, "row": ...}`. In its texts `{n}` is the number of the row, `{nn}` the same
with two digits; a text that is `#{n*3+100}` as a whole is a number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).parent
_NUMBER = re.compile(r"#\{n(?:\*(\d+))?(?:\+(\d+))?\}")


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call of a tool, and what a model would ask for to find it.

    `wants`: the paths (RFC 9535) into its result that the task goes on with, none if all of it is read. `after`: the
    calls of the task whose results it needs. `later`: that it is needed is only seen in one of them.
    """

    tool: str
    query: str
    arguments: dict[str, Any]
    wants: tuple[str, ...] = ()
    after: frozenset[int] = frozenset()
    later: bool = False


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody asks, and the calls that it takes, each after those that it needs."""

    asked: str
    calls: tuple[Call, ...]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tasks: tuple[Task, ...]


def load_tasks() -> tuple[Task, ...]:
    """Return the tasks of `tasks.toml`."""
    return msgspec.toml.decode((HERE / "tasks.toml").read_bytes(), type=_File).tasks


def load_answers() -> Mapping[str, Mapping[str, str]]:
    """Return by server the text that each of its tools answers; an object is sent as JSON."""
    answers: dict[str, dict[str, str]] = defaultdict(dict)
    for path, template in msgspec.json.decode((HERE / "answers.json").read_bytes()).items():
        server, _, tool = path.partition(":")
        made = fill(template)
        text = isinstance(made, dict) and made.keys() == {"text"}
        answers[server][tool] = made["text"] if text else msgspec.json.encode(made).decode()
    return answers


def fill(template: Any, number: int = 1) -> Any:
    """Return a template's value for the row of a number."""
    match template:
        case {"$rows": int(count), "row": row}:
            return [fill(row, each) for each in range(1, count + 1)]
        case dict():
            return {key: fill(value, number) for key, value in template.items()}
        case list():
            return [fill(value, number) for value in template]
        case str() if formula := _NUMBER.fullmatch(template):
            return number * int(formula[1] or 1) + int(formula[2] or 0)
        case str():
            return template.replace("{nn}", f"{number:02}").replace("{n}", str(number))
    return template
