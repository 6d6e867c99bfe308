"""What the pages in docs/contributing/ say of paths, layers and terms is what the code has."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.sources import ROOT, is_marker, modules, tree
from tests.test_architecture import LAYERS, layer, names_of

CONTRIBUTING = ROOT / "docs" / "contributing"
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])


def between(text: str, name: str) -> str:
    """What stands between the two marks of a list."""
    return text[text.index(f"<!-- {name} -->") : text.index(f"<!-- end of {name} -->")]


def items(text: str, name: str) -> list[str]:
    """The items of the list between two marks, each as one line."""
    return re.findall(r"^- (.*)$", re.sub(r"\n +", " ", between(text, name)), re.MULTILINE)


def parts(item: str, pattern: str) -> tuple[str, ...]:
    """What a pattern finds in an item; the whole of it has to fit."""
    match = re.fullmatch(pattern, item)
    assert match is not None, item
    return match.groups("")


def test_every_path_on_the_pages_exists() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in CONTRIBUTING.glob("*.md"))
    paths = set(re.findall(r"`([\w.-][\w./-]*(?:\.(?:py|md|json|toml)|/))`", text))
    paths |= set(re.findall(r"`((?:actors|supervisor|tests|docs|benchmarks|examples|\.ci)/[\w./-]+)`", text))
    assert len(paths) > 60
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


@cache
def files() -> tuple[str, ...]:
    """Every module of ours, by its path."""
    folders = ("actors", "supervisor", "tests", "benchmarks", "docs", "examples")
    return tuple(f"/{file.relative_to(ROOT).as_posix()}" for name in folders for file in (ROOT / name).rglob("*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_module_that_a_page_names_is_there(page: Path) -> None:
    """Where a page is about one folder, the end of a path is enough."""
    named = set(re.findall(r"`([\w.-][\w./-]*\.py)`", page.read_text(encoding="utf-8")))
    assert [name for name in sorted(named) if not any(file.endswith(f"/{name}") for file in files())] == []


def test_the_page_has_the_folders_of_each_layer() -> None:
    page = between((CONTRIBUTING / "architecture.md").read_text(encoding="utf-8"), "layers")
    told = {
        title: sorted(re.findall(r"`([\w/]+)/`", "".join(re.findall(r"^- (.*?): ", text, re.MULTILINE))))
        for title, text in re.findall(r"^### (\w+)\n(.*?)(?=^###|\Z)", page, re.MULTILINE | re.DOTALL)
    }
    folders = [name for name in modules() if is_marker(name) and name.count(".") == 1]
    assert told == {
        title.capitalize(): sorted(name.replace(".", "/") for name in folders if layer(name) == number)
        for number, title in enumerate(LAYERS)
    }
    assert list(told) == [title.capitalize() for title in LAYERS]


def test_every_term_is_there_once_and_its_name_is_one_in_the_code() -> None:
    names = {public for name in modules() for node in tree(name).body for public in names_of(node)}
    text = (CONTRIBUTING / "terms.md").read_text(encoding="utf-8")
    terms = [parts(item, r"\*\*([\w, -]+)\*\* \((`\w+`(?:, `\w+`)*)\): .+\.") for item in items(text, "terms")]
    assert len({term for term, _ in terms}) == len(terms)
    assert {name for _, said in terms for name in re.findall(r"\w+", said)} <= names
