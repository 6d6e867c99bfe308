"""The documentation of the configuration has every key, as the code has it; the examples load."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from actors.catalogue.tool_rules import ToolRules
from actors.catalogue.views import ViewProfile
from actors.kit.documented import descriptions
from docs.generate import SETTINGS
from supervisor.config import OAuthConfig, ServerConfig, Settings, load, parse
from supervisor.config.file import read_text
from supervisor.config.jsonc import read_document
from supervisor.config.keys import FOREIGN, TOP_LEVEL
from supervisor.config.value_rules import ValueRule
from supervisor.config.values import keys_of
from supervisor.reference.configuration import headings, schema, with_links
from supervisor.servers.reloading.difference import LIVE

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "reference" / f"{page}.md" for page in SETTINGS]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
EXAMPLES = ["container.json", "mcp.json", "vscode-mcp.json"]


def test_every_field_of_the_structs_is_a_documented_key() -> None:
    derived = {"name", "kind", "passed", "tiered"}
    assert set(keys_of(Settings)) == set(Settings.__struct_fields__)
    assert set(keys_of(ServerConfig)) == set(ServerConfig.__struct_fields__) - derived
    for struct in (Settings, ServerConfig, OAuthConfig, ToolRules, ViewProfile, ValueRule):
        texts = descriptions(struct)
        for key in keys_of(struct).values():
            assert texts[key.name].endswith("."), key.name
            shown = re.findall(rf"\*\*`{key.name}`\*\* \((.*?), default `", " ".join(TEXT.split()))
            assert key.expects in [in_full(words) for words in shown], key.name


def in_full(words: str) -> str:
    """Return what a key takes with the short names of values replaced by what the documentation says that they mean."""
    for short, full in re.findall(r"^- \*(.+?)\*: (.+)\.$", TEXT, re.MULTILINE):
        words = words.replace(short, full)
    return words


@pytest.mark.parametrize("struct", [Settings, ServerConfig])
def test_every_key_stands_below_a_heading(struct: type[msgspec.Struct]) -> None:
    titles = headings(struct)
    assert next(iter(keys_of(struct))) in titles
    assert set(titles) <= set(keys_of(struct))
    assert len(set(titles.values())) == len(titles)
    assert all(f"\n### {title}\n" in TEXT for title in titles.values())


def test_the_settings_that_take_effect_at_once_are_marked() -> None:
    page = " ".join((ROOT / "docs" / "reference" / "daemon.md").read_text(encoding="utf-8").split())
    assert set(re.findall(r"\*\*`(\w+)`\*\* \([^:]*?, live\):", page)) == LIVE


def test_names_of_pages_are_links() -> None:
    text = "see `docs/reference/tools.md` and `docs/background/search.md`, not `docs/`"
    assert with_links(text) == "see [tools](tools.md) and [search](../background/search.md), not `docs/`"


def test_no_key_is_both_ours_and_another_programs() -> None:
    both = set(keys_of(ServerConfig)) & set(FOREIGN)
    assert both == {"trust"}  # theirs is true or false, ours a word


def test_the_json_in_the_documentation_is_a_configuration(tmp_path: Path) -> None:
    examples = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    assert len(examples) == 11
    for example in examples:
        file = tmp_path / "mcp.json"
        file.write_text(example)
        assert load(file, {"HOME": "/home/me", "TICKETS_SECRET": "x", "METRICS_SECRET": "x"}).problems == ()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_load_without_a_remark(name: str) -> None:
    path = ROOT / "examples" / name
    configuration = parse(
        read_text(path), path, {"HOME": "/home/me"}
    )  # whether their programs are here does not matter
    assert len(configuration.servers) >= 2
    assert configuration.problems == ()
    assert [
        note for note in configuration.notes if not (name == "container.json" and "other machines" in str(note))
    ] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_json_schema_knows_every_key_of_the_examples(name: str) -> None:
    text = (ROOT / "examples" / name).read_text(encoding="utf-8")
    value = read_document(text, name).value
    properties = schema()["properties"]
    assert set(value) <= set(properties)
    assert set(value.get("supervisor", {})) <= set(properties["supervisor"]["properties"])
    section = "servers" if "servers" in value else "mcpServers"
    for server in value[section].values():
        assert set(server) <= set(properties[section]["additionalProperties"]["properties"])


def test_the_command_prints_the_schema() -> None:
    command = [sys.executable, "-m", "supervisor.reference.configuration"]
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60).stdout
    assert set(json.loads(printed)["properties"]) == set(TOP_LEVEL)


def test_each_word_that_a_setting_takes_is_explained_by_its_name() -> None:
    texts = descriptions(ServerConfig)
    for key in keys_of(ServerConfig).values():
        if isinstance(key.type, msgspec.inspect.LiteralType) and key.name in ("ask", "era", "restart"):
            assert all(f"`{word}`: " in texts[key.name] for word in key.type.values), key.name


def test_a_setting_of_a_rate_is_told_as_a_rate() -> None:
    rates = [key for key in keys_of(Settings).values() if key.name.endswith("_per_s")]
    assert rates
    assert all("a second" in key.expects for key in rates)
