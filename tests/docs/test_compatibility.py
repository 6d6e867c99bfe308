"""The versions and the matrix on the pages of the background are those of the tests."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.e2e import matrix

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / "tests" / "e2e" / "clients"
BROWSER = ROOT / "tests" / "e2e" / "browser"
SUITES = ROOT / "tests" / "conformance" / "pins"
BACKGROUND = ROOT / "docs" / "background"
PAGE = "\n".join(
    (BACKGROUND / name).read_text(encoding="utf-8") for name in ("compatibility.md", "conformance.md", "matrix.md")
)


def test_the_page_names_the_pinned_typescript_packages() -> None:
    pins = json.loads((CLIENTS / "package.json").read_text())["dependencies"]
    for name, pin in pins.items():
        assert f"{name} {pin}" in PAGE


def test_the_page_names_the_pinned_packages_of_the_sdk_1() -> None:
    pins = dict(line.split("==") for line in (CLIENTS / "mcp1.txt").read_text().split())
    assert f"mcp {pins['mcp']}" in PAGE
    assert f"- mcp-server-sqlite {pins['mcp-server-sqlite']}, made with mcp {pins['mcp']}: " in PAGE


def test_the_page_names_the_installed_packages_of_the_sdk_2() -> None:
    assert f"### Python SDK 2.x, mcp {version('mcp')}\n" in PAGE
    for server in ("mcp-server-time", "mcp-server-git"):
        assert f"- {server} {version(server)}, made with mcp {version('mcp')}: " in PAGE


def test_the_page_names_the_pinned_conformance_suites() -> None:
    for pin in json.loads((SUITES / "package.json").read_text())["dependencies"].values():
        assert pin.removeprefix("npm:@modelcontextprotocol/conformance@") in PAGE


def test_the_page_names_the_pinned_browser() -> None:
    pin = json.loads((BROWSER / "package.json").read_text())["dependencies"]["@sparticuz/chromium"]
    assert f"Chromium {pin.partition('.')[0]}" in PAGE


def wire_items() -> dict[str, str]:
    """What stands on the page "On the wire", by heading."""
    page = (BACKGROUND / "on-the-wire.md").read_text(encoding="utf-8")
    return {each.partition("\n")[0]: each for each in page.split("\n## ")[1:]}


@pytest.mark.parametrize("heading", wire_items())
def test_every_choice_on_the_wire_names_tests_that_exist(heading: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", wire_items()[heading].partition("**Tests:**")[2])
    assert named
    for file, name in named:
        assert re.search(rf"^(?:async )?def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), name


@pytest.mark.parametrize("pins", [CLIENTS, SUITES, BROWSER])
def test_the_lock_file_names_no_registry(pins: Path) -> None:
    lock = json.loads((pins / "package-lock.json").read_text())
    assert all("resolved" not in package for package in lock["packages"].values())


def test_the_matrix_of_clients_and_servers_is_that_of_the_tests() -> None:
    assert matrix.rewrite(PAGE) == PAGE


def test_whatever_does_not_get_through_is_shown_by_a_test() -> None:
    page = (BACKGROUND / "between-eras.md").read_text(encoding="utf-8")
    section = page.partition("## What does not get through")[2].partition("\n## ")[0]
    items = re.findall(r"^- (.*)$", re.sub(r"\n +", " ", section), re.MULTILINE)
    assert len(items) > 20
    for item in items:
        file, name = re.findall(r"<!-- (tests/[\w/]+\.py)::(test_\w+) -->$", item)[0]
        assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), item
