"""What the pages in docs/contributing/ say of paths, folders and words is what the code has."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from tests.test_architecture import modules, nodes

ROOT = Path(__file__).parents[2]
CONTRIBUTING = ROOT / "docs" / "contributing"
FOLDERS = (CONTRIBUTING / "folders.md").read_text(encoding="utf-8")
WORDS = (CONTRIBUTING / "words.md").read_text(encoding="utf-8")
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
SOURCES = sorted(file for package in ("actors", "supervisor") for file in (ROOT / package).rglob("*.py"))

OF_OTHERS = re.compile(r"\b(worker\s+threads?|ai[- ]catalog|(context|package|version)\s+managers?)\b", re.IGNORECASE)
"""Words of others for things of theirs."""
NOUN = {"handle": r"\b(?:an?|the|its|this|no) handles?\b"}
"""How a word is found that is also a verb; any other one is found wherever it stands."""


def items(text: str, name: str) -> list[str]:
    """The items of the list between two marks, each as one line."""
    part = text[text.index(f"<!-- {name} -->") : text.index(f"<!-- end of {name} -->")]
    return re.findall(r"^- (.*)$", re.sub(r"\n +", " ", part), re.MULTILINE)


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


def test_every_folder_has_its_item_with_a_rule_and_every_item_is_a_folder() -> None:
    folders = [parts(item, r"`([\w/]+/)`: (.+)\. \*Rule:\* (.+)\.") for item in items(FOLDERS, "folders")]
    assert sorted(name for name, *_ in folders) == sorted(
        {f"{file.parent.relative_to(ROOT).as_posix()}/" for file in SOURCES}
    )


# Words ----------------------------------------------------------------------------------------------------------------


@cache
def defined() -> frozenset[str]:
    """The name of every class, function and type alias of the two packages."""
    names: set[str] = set()
    for node in chain.from_iterable(map(nodes, modules())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(names)


def said() -> Iterator[tuple[str, str]]:
    """Where something is said to people, and what: docstrings, comments, and the pages without their code.

    But for modules in which none of the words to avoid is, wherever it be.
    """
    any_of_them = re.compile("|".join(map(pattern_of, avoided())), re.IGNORECASE)
    for module, file in modules().items():
        text = file.read_text(encoding="utf-8")
        if not any_of_them.search(text):
            continue  # nor in a part of it
        comments = [
            token.string
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.COMMENT
        ]
        docstrings = [
            node.value.value
            for node in nodes(module)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ]
        yield str(file.relative_to(ROOT)), "\n".join([*comments, *docstrings])
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"<!-- words -->.*<!-- end of words -->", "", text, flags=re.DOTALL)
        yield page.name, re.sub(r"```.*?```|`[^`\n]+`|\]\([^)]*\)|<?https?://\S+", "", text, flags=re.DOTALL)


def pattern_of(word: str) -> str:
    return NOUN.get(word, rf"\b{word}s?\b")


@cache
def everything_said() -> tuple[tuple[str, str], ...]:
    return tuple((where, OF_OTHERS.sub("", text)) for where, text in said())


@cache
def everything_in_small_letters() -> tuple[str, ...]:
    """The same, to find soon where a word may be."""
    return tuple(text.lower() for _, text in everything_said())


def words() -> list[tuple[str, ...]]:
    """Each item of the words: the words, their names in the code, and those that are not used for it."""
    pattern = r"\*\*([\w, -]+)\*\* \((`\w+`(?:, `\w+`)*)\): .+?\.(?: \*Not:\* ([\w, ]+)\.)?"
    return [parts(item, pattern) for item in items(WORDS, "words")]


def avoided() -> list[str]:
    return [word.strip() for *_, avoided in words() for word in avoided.split(",") if word]


def test_every_word_is_there_once_and_is_a_name_in_the_code() -> None:
    used = [word.strip() for item in words() for word in item[0].split(",")]
    assert len(used) == len(set(used)) > 25
    assert not set(used) & set(avoided())
    for item in words():
        assert set(re.findall(r"`(\w+)`", item[1])) <= defined(), item[0]


def test_the_words_to_avoid_are_those_that_were_decided() -> None:
    assert {"worker", "backend", "manager", "handle"} <= set(avoided())


@pytest.mark.parametrize("word", avoided())
def test_a_word_that_is_avoided_is_nowhere_said(word: str) -> None:
    pattern = re.compile(pattern_of(word), re.IGNORECASE)
    likely = [
        said for said, small in zip(everything_said(), everything_in_small_letters(), strict=True) if word in small
    ]
    assert [(where, avoided.group()) for where, text in likely for avoided in pattern.finditer(text)] == []


@pytest.mark.parametrize("word", avoided())
def test_a_word_that_is_avoided_is_in_no_name_of_a_class(word: str) -> None:
    assert [name for name in defined() if re.search(rf"{word.capitalize()}s?(?![a-z])", name)] == []
