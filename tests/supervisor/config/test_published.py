"""What a node takes of the configuration that was published for its fleet, beside its own file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ConfigError
from supervisor.config import Configuration, load
from supervisor.config.jsonc import ConfigText, read_document
from supervisor.config.load import OF_ONE_MACHINE, lay_below
from supervisor.config.provenance import explain_server
from supervisor.config.settings import Settings
from supervisor.reference.configuration import headings

names = st.sampled_from(["a", "A", "b", "c", "_note"])
entries = st.dictionaries(
    names, st.fixed_dictionaries({"command": st.sampled_from("xyz")}, optional={"slug": names}), max_size=4
)
settings = st.dictionaries(
    st.sampled_from([*sorted(OF_ONE_MACHINE), "auth", "env", "call_timeout_s"]), st.integers(0, 9), max_size=6
)
profiles = st.dictionaries(names, st.fixed_dictionaries({"servers": st.integers(0, 9)}), max_size=3)
supervisors = st.builds(lambda some, named: {**some, "profiles": named} if named else some, settings, profiles)
files = st.fixed_dictionaries(
    {}, optional={"mcpServers": entries, "servers": entries, "supervisor": supervisors, "$schema": st.just("s")}
)


def written(value: Any) -> ConfigText:
    return read_document(json.dumps(value, indent=1), "f")


def both(own: Any, published: Any) -> ConfigText:
    return lay_below(written(own), written(published), "published.json")


def entries_of(value: Any) -> dict[tuple[str, str], Any]:
    return {
        (section, name): value[section][name]
        for section in ("mcpServers", "servers")
        for name in value.get(section, {})
    }


@given(files, files)
def test_what_the_own_file_has_counts(own: Any, published: Any) -> None:
    value = both(own, published).value
    for section, members in own.items():
        if isinstance(members, dict):
            whole = {key: each for key, each in members.items() if key != "profiles"}
            assert whole.items() <= value[section].items()
    mine = own.get("supervisor", {}).get("profiles", {})
    assert mine.items() <= value.get("supervisor", {}).get("profiles", {}).items()


@given(files, files)
def test_the_rest_is_what_was_published_without_what_is_of_one_machine(own: Any, published: Any) -> None:
    value, mine, theirs = both(own, published).value, entries_of(own), entries_of(published)
    taken = {name.casefold() for _, name in mine} | {
        each["slug"].casefold() for each in mine.values() if "slug" in each
    }
    assert entries_of(value) == {**{at: each for at, each in theirs.items() if at[1].casefold() not in taken}, **mine}
    common = {key: each for key, each in published.get("supervisor", {}).items() if key not in OF_ONE_MACHINE}
    merged, before = value.get("supervisor", {}), own.get("supervisor", {})
    assert merged.keys() == before.keys() | common.keys()
    assert merged.get("profiles", {}) == {**common.get("profiles", {}), **before.get("profiles", {})}


@given(files, files)
def test_once_more_changes_nothing(own: Any, published: Any) -> None:
    once = both(own, published)
    assert lay_below(once, written(published), "published.json").value == once.value


@given(files, files)
def test_each_key_is_on_its_line_of_the_file_that_it_is_from(own: Any, published: Any) -> None:
    document, texts = both(own, published), {"": own, "published.json": published}
    for at, line in document.lines.items():
        assert line == written(texts[document.other_file(at)]).line(at)


def test_what_is_of_one_machine_is_how_it_is_reached_where_its_files_are_and_how_it_is_a_node() -> None:
    fields, (address, people, *_) = Settings.__struct_fields__, headings(Settings)
    of_address = fields[fields.index(address) : fields.index(people)]
    assert {*of_address, "data_dir", "fleet"} == OF_ONE_MACHINE


@pytest.mark.parametrize("section", ["mcpServers", "supervisor"])
def test_what_is_no_object_is_left_to_whoever_reads_it(section: str) -> None:
    assert both({section: 1}, {section: {"a": {}}}).value == {section: 1}
    document = both({}, {section: 1})
    assert (document.value, document.other_file((section,))) == ({section: 1}, "published.json")
    assert lay_below(written([]), written({}), "p").value == []
    with pytest.raises(ConfigError, match=r"^p:1: the outermost value must be an object$"):
        lay_below(written({}), written([]), "p")


OWN = """{
  "mcpServers": {"mine": {"command": "own"}},
  "supervisor": {"listen": "127.0.0.1:1", "fleet": {"configuration": "published"}}
}"""


def read(directory: Path, published: str, own: str = OWN) -> Configuration:
    (directory / "mcp.json").write_text(own)
    (directory / "published.json").write_text(published)
    return load(directory / "mcp.json", {"SET": "here"}, published=directory / "published.json")


def test_a_file_is_read_with_what_was_published_and_both_digests_are_known(tmp_path: Path) -> None:
    servers = {"mine": {"command": "x"}, "b": {"command": "${SET}", "cwd": "."}}
    text = json.dumps({"servers": servers, "supervisor": {"listen": "127.0.0.1:2", "auth": "tokens"}})
    read_so = read(tmp_path, text)
    assert {server.name: server.command for server in read_so.servers} == {"mine": "own", "b": "here"}
    assert (read_so.settings.listen, read_so.settings.auth) == ("127.0.0.1:1", "tokens")
    assert len(read_so.published) == len(read_so.digest) == 16
    assert read_so.published != read_so.digest
    of_b = {each.key: each for each in explain_server(read_so, read_so.servers[1], {})}
    assert of_b["command"].words("mcp.json", of_daemon=False).startswith("published.json:1")
    assert of_b["cwd"].value == str(tmp_path)  # from where the own file is


def test_without_a_copy_the_own_file_is_all(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(OWN)
    alone = load(tmp_path / "mcp.json", {}, published=tmp_path / "published.json")
    assert ([server.name for server in alone.servers], alone.published) == (["mine"], "")


@pytest.mark.parametrize(
    ("published", "says"),
    [
        ("{\n", "published.json:2: the file ends before"),
        ('{\n\n"mcpServer": {}}', 'published.json:3: mcpServer: unknown key (did you mean "mcpServers"?)'),
        ('{"supervisor": {\n"call_timeout_s": 0}}', "published.json:2: supervisor.call_timeout_s: must be"),
        (
            '{"supervisor": {\n"auth": "none",\n"auth": "none"}}',
            "published.json:3: supervisor.auth: the key is written",
        ),
        ('{"supervisor": {\n"fleat": {}}}', "published.json:2: supervisor.fleat: unknown key"),
    ],
)
def test_a_fault_of_what_was_published_names_its_line_there(tmp_path: Path, published: str, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, published)
    assert says in str(error.value)


def test_a_fault_of_an_entry_names_its_file_and_another_one_that_it_is_at_odds_with(tmp_path: Path) -> None:
    lines = ('"b": {"comand": "x"}', '"c": {"command": "x", "slug": "mine"}', '"d": {"command": "x", "command": "y"}')
    text = '{"mcpServers": {\n' + ",\n".join(lines) + "}}"
    said = [str(problem) for problem in read(tmp_path, text).problems]
    assert any("published.json:2: mcpServers.b.comand: unknown key" in each for each in said)
    assert any("published.json:4: mcpServers.d.command: the key is written twice" in each for each in said)
    (of_c,) = [each for each in said if "published.json:3: mcpServers.c" in each]
    assert f"used by another entry, too (line 2 of {tmp_path}/mcp.json)" in of_c


def test_keys_that_the_own_file_overrides_may_be_ambiguous_in_what_was_published(tmp_path: Path) -> None:
    text = '{"mcpServers": {"mine": {"command": "x", "command": "y"}}, "supervisor": {"listen": "a", "listen": "b"}}'
    assert read(tmp_path, text).problems == ()
