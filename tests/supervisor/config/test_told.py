"""What is told of a configuration, word by word: each text of `told/` has parts of configurations, and below each what
is wrong with it, or odd.

A text says where its parts stand; with `null` each is the text of a whole file. Else it stands alone in a file that has
one key per line. What was changed on purpose is written by `python -m tests.supervisor.config.test_told`; then read the
difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any, Final

import pytest

from actors.errors import ConfigError
from supervisor.config import parse
from supervisor.config.values import SeveralErrors

TOLD: Final = Path(__file__).with_name("told")
ENVIRON: Final = {
    "HOME": "/home/me",
    "REGION": "eu",
    "KEY": "canary-key-of-a-service",
    "SECRET": "canary" + "s" * 40,
    "TOKEN": "canary-token",
}
FILES: Final = {"/x/bad.env": "A=1\ncanary"}
BESIDE: Final[dict[str, Any]] = {
    "github": {"command": "c"},
    "my-notes": {"command": "c", "slug": "notes"},
    "s": {
        "command": "c",
        "args": ["${user:MORE:-}", "${user:ONE:-x}"],
        "env": {"TOKEN": "${user:TOKEN}", "HOST": "${team:HOST:-h}"},
        "values": {"MORE": {"several": True}},
    },
    "off": {"command": "c", "disabled": True},
}
"""Servers that are there where the part is none of an entry."""


def read_file(path: PurePath) -> str:
    if str(path) not in FILES:
        raise ConfigError("cannot read the file: No such file or directory", path=str(path), hint="check path")
    return FILES[str(path)]


def written(place: list[str] | None, part: Any) -> str:
    """Return a configuration with a part at a place."""
    if place is None:
        return str(part)
    document = part
    for key in reversed(place):
        document = {key: document}
    beside = {} if place[:1] == ["mcpServers"] else {"mcpServers": BESIDE}
    return json.dumps(document | beside, indent=1)


def told(place: list[str] | None, part: Any) -> Iterator[str]:
    """Yield what is told of a part, and of a whole file which servers start; nothing of the environment is in it."""
    try:
        found = parse(written(place, part), Path("/x/mcp.json"), ENVIRON, read_file=read_file)
        said = [*(f"{error}" for error in found.problems), *(f"note: {note}" for note in found.notes)]
        said += [f"starts: {server.name}" for server in found.servers if place is None]
    except SeveralErrors as several:
        said = [f"none starts: {error}" for error in several.errors]
    except ConfigError as error:
        said = [f"none starts: {error}"]
    assert "canary" not in str(said)
    yield from (each.replace("/x/mcp.json:", "") for each in said or ["nothing"])


def play(text: str) -> str:
    """Return a text with what is told of its parts now."""
    place: list[str] | None = []
    lines = list[str]()
    for line in text.splitlines():
        if line.startswith("at "):
            place = json.loads(line.removeprefix("at "))
        if not line.startswith("  "):
            lines.append(line)
        if line.startswith("> "):
            lines += [f"  {each}" for each in told(place, json.loads(line.removeprefix("> ")))]
    return "\n".join(lines) + "\n"


@pytest.mark.case("D06", "L14", "N06", "N07", "N11", "X12")
@pytest.mark.parametrize("name", [path.name for path in sorted(TOLD.glob("*.txt"))])
def test_what_is_told_of_a_configuration_is_as_it_was_recorded(name: str) -> None:
    text = (TOLD / name).read_text(encoding="utf-8")
    assert play(text) == text


if __name__ == "__main__":
    for path in TOLD.glob("*.txt"):
        path.write_text(play(path.read_text(encoding="utf-8")), encoding="utf-8")
