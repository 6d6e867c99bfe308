"""What a server sees, looked up on the disk: what it needs, nothing of the daemon, no link that it could have made."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.errors import SpawnFailed
from actors.transport.stdio.sandbox import Bound, Sandbox, sight_of
from tests.actors.transport.stdio.sandbox.bwrap import home

__all__ = ["home"]


def bound(home: Path, sandbox: Sandbox, program: str | Path = "/bin/true", cwd: Path | str = "") -> set[Bound]:
    environment = {"HOME": str(home), "PATH": f"{home}/tools/bin:/usr/bin:/bin"}
    private = [str(home / "mcp.json"), str(home / "data")]
    return set(sight_of(str(program), environment, str(cwd), sandbox, private).bound)


def program(place: Path, text: str = "#!/bin/sh\n") -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    place.chmod(0o755)
    return place


def test_what_is_listed_is_seen_and_nothing_else(home: Path) -> None:
    seen = bound(home, Sandbox(read=(f"{home}/notes",), write=(f"{home}/other",)), cwd=home / "project")
    place = {name: str(home / name) for name in ("project", "notes", "other")}
    assert seen == {
        Bound(place["project"], place["project"], True),
        Bound(place["other"], place["other"], True),
        Bound(place["notes"], place["notes"]),
    }


def test_a_program_brings_its_libraries_its_links_and_its_interpreter(home: Path) -> None:
    tool = program(home / "apps" / "bin" / "tool", "#!/usr/bin/env node\n")
    (home / "apps" / "lib").mkdir()
    program(home / "tools" / "bin" / "node")
    (home / "links").mkdir()
    link = home / "links" / "tool"
    link.symlink_to("../apps/bin/tool")
    seen = {(each.at, each.writable) for each in bound(home, Sandbox(), link)}
    assert seen == {
        (str(place), False) for place in (tool, link, tool.parent, home / "apps" / "lib", home / "tools" / "bin")
    }


def test_a_script_in_no_directory_of_programs_comes_alone(home: Path) -> None:
    script = program(home / "notes" / "server")
    assert bound(home, Sandbox(), script) == {Bound(str(script), str(script))}


def test_a_link_in_a_directory_that_the_server_writes_is_not_followed(home: Path) -> None:
    """Else a server could show itself whatever it likes at its next start."""
    (home / "project" / "bin").mkdir()
    (home / "project" / "bin" / "server").symlink_to(home / ".ssh" / "id")
    (home / "project" / "sbin").symlink_to(home / ".ssh")
    for name in ("bin/server", "sbin/id"):
        seen = bound(home, Sandbox(), home / "project" / name, home / "project")
        assert {each.place for each in seen} == {str(home / "project")}


@pytest.mark.parametrize("written", [False, True])
def test_a_listed_place_is_not_reached_through_a_link(home: Path, written: bool) -> None:
    (home / "project" / "docs").symlink_to(home / ".ssh")
    listed = (f"{home}/project/docs",)
    with pytest.raises(SpawnFailed, match="symbolic link") as caught:
        bound(home, Sandbox(write=listed) if written else Sandbox(read=listed))
    assert caught.value.permanent
    assert str(home / ".ssh") in caught.value.hint


def test_a_home_that_is_a_link_is_seen_as_it_is_called(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called = home / "other" / "called"
    called.symlink_to(home / "notes")
    (home / "notes" / "x").mkdir()
    monkeypatch.setenv("HOME", str(called))
    place = str(home / "notes" / "x")
    assert bound(home, Sandbox(write=(f"{called}/x",))) == {
        Bound(place, place, True),
        Bound(place, f"{called}/x", True),
    }


@pytest.mark.parametrize("listed", ["", "data", "mcp.json", "data/logs"])
def test_no_sandbox_shows_the_configuration_or_the_data_directory(
    home: Path, listed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    (home / "data" / "logs").mkdir()
    with pytest.raises(SpawnFailed, match="of the daemon") as caught:
        bound(home, Sandbox(read=(f"{home}/{listed}".rstrip("/"),)))
    assert caught.value.permanent


@pytest.mark.parametrize(("listed", "why"), [("", "home directory"), ("gone", "no such file")])
def test_what_cannot_be_listed(home: Path, listed: str, why: str) -> None:
    with pytest.raises(SpawnFailed, match=why) as caught:
        bound(home, Sandbox(write=(f"{home}/{listed}".rstrip("/"),)))
    assert caught.value.permanent
