"""What the guides show is what the program says: configurations, messages, and the times of settings."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from supervisor.config import ServerConfig, Settings, load
from supervisor.front.guard import FORWARDED
from tests.sources import nodes

ROOT = Path(__file__).parents[2]
GUIDES = {page.stem: page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "guides").glob("*.md"))}
ENVIRONMENT = {
    "HOME": "/home/me",
    "TICKETS_KEY": "x",
    "MCPVISOR_SECRET": "x" * 32,
    "COLLECTOR_TOKEN": "x",
    "MCPVISOR_FLEET_KEY": "x" * 64,
}
OTHERS = {"invalid peer certificate", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"}
"""What programs of others say."""
PLACEHOLDERS = re.compile(r"\.\.\.|FILE:LINE:|NAME|\d+|[(){}]|\$")


@pytest.mark.parametrize("page", [page for page in GUIDES if page != "plugins"])  # see test_plugins
def test_the_json_of_the_guides_is_a_configuration(page: str, tmp_path: Path) -> None:
    for example in re.findall(r"```json\n(.*?)```", GUIDES[page], re.DOTALL):
        file = tmp_path / "mcp.json"
        file.write_text(example)
        assert load(file, ENVIRONMENT).problems == ()


def test_the_messages_that_are_explained_are_those_of_the_program() -> None:
    explained = re.findall(r"^- \*\*(`.*)$", GUIDES["troubleshooting"].replace("\n  ", " "), re.MULTILINE)
    messages = [message for line in explained for message in re.findall(r"`([^`]+)`", line.partition("**")[0])]
    assert len(messages) > 40
    said = "\n".join(constants())
    unknown = [piece for message in messages if message not in OTHERS for piece in pieces(message) if piece not in said]
    assert unknown == []


def constants() -> set[str]:
    """Every string in the program, of those with values in them the pieces."""
    files = [file for folder in ("actors", "supervisor") for file in (ROOT / folder).rglob("*.py")]
    found = (node for file in files for node in nodes(file))
    return {node.value for node in found if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def pieces(message: str) -> list[str]:
    """The parts of a message that are the same whatever its values are."""
    return [piece for part in PLACEHOLDERS.split(message) if (piece := part.strip(" '\":;"))]


def test_the_times_in_the_guides_are_the_defaults_of_their_settings() -> None:
    told = re.findall(r"`(\w+_s)`(?: of the server)?,? \(?(\d+) s\b", " ".join(" ".join(GUIDES.values()).split()))
    defaults = {**defaults_of(ServerConfig), **defaults_of(Settings)}
    assert {name: float(seconds) for name, seconds in told} == {name: defaults[name] for name, _ in told}
    assert len(told) >= 6


def defaults_of(struct: type[Settings | ServerConfig]) -> dict[str, object]:
    names = reversed(struct.__struct_fields__)
    return dict(zip(names, reversed(struct.__struct_defaults__), strict=False))


def test_the_page_about_proxies_names_all_by_which_one_is_known() -> None:
    named = {name.lower() for name in re.findall(r"`([\w-]+)`", GUIDES["service"])}
    assert {name.decode() for name in FORWARDED} <= named
