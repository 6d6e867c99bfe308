"""Plugins are found by what installed packages say of themselves, and what is wrong with one is said in words."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.errors import ConfigError
from supervisor.plugins.contract import PluginOptions
from supervisor.plugins.loading import find, make, names, options_of, versions
from tests.fakes.plugins import install

HEAD = "from supervisor.plugins.contract import Plugin, PluginOptions\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_plugin_is_found_with_its_version_hooks_and_options(place: Path) -> None:
    source = f"{HEAD}class P(Plugin):\n    async def before_call(self, call): ...\n"
    install(place, "plug_a", source, {"a": "P"})
    package = find("a")
    assert (package.distribution, package.version, package.hooks) == ("plug_a", "1.2.3", frozenset({"before_call"}))
    assert (names(), versions(), options_of("a")) == (["a"], {"a": "plug_a 1.2.3"}, PluginOptions)
    assert type(make(package, {})).__name__ == "P"


def test_nothing_is_imported_to_tell_which_there_are(place: Path) -> None:
    install(place, "plug_never", "raise SystemExit('imported')", {"never": "P"})
    assert (names(), versions()) == (["never"], {"never": "plug_never 1.2.3"})


@pytest.mark.parametrize(
    ("source", "what", "said"),
    [
        ("import nowhere_at_all", "P", "cannot be imported (ModuleNotFoundError: it lacks nowhere_at_all)"),
        ("raise SystemExit('secret')", "P", "cannot be imported (SystemExit)"),
        ("1 / 0", "P", "cannot be imported (ZeroDivisionError)"),
        ("", "P", "cannot be imported (AttributeError)"),
        ("P = 7", "P", "plug_b:P is no class derived from Plugin"),
        (f"{HEAD}class P(Plugin):\n    options_type = dict", "P", "has options_type that is not derived"),
        (f"{HEAD}class P(Plugin):\n    guards = 'yes'", "P", "has guards that is neither True nor False"),
        (f"{HEAD}class P(Plugin):\n    before_call = 7", "P", "has before_call, which is no function"),
    ],
)
def test_a_plugin_of_no_use_says_why(place: Path, source: str, what: str, said: str) -> None:
    install(place, "plug_b", source, {"b": what})
    with pytest.raises(ConfigError) as caught:
        find("b")
    assert said in caught.value.message
    assert "secret" not in str(caught.value)


def test_one_that_cannot_be_made_says_so_without_a_word_of_the_options(place: Path) -> None:
    source = f"{HEAD}class P(Plugin):\n    def __init__(self, options): raise KeyError('secret')\n"
    install(place, "plug_c", source, {"c": "P"})
    with pytest.raises(ConfigError, match=r"cannot be made of its options \(KeyError\) "):
        make(find("c"), {})


def test_an_unknown_one_is_told_with_the_nearest_names(place: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        find("acces")
    assert caught.value.hint == "no plugin is installed: install its package with the Python of the daemon"
    install(place, "plug_d", "", {"access": "P", "other": "P"})
    for name, hint in (("acces", "did you mean access?"), ("xyz", "installed are access, other")):
        with pytest.raises(ConfigError, match="no plugin of this name is installed") as caught:
            find(name)
        assert caught.value.hint == hint


def test_two_of_one_name_are_one_too_many(place: Path) -> None:
    install(place, "plug_e", "", {"same": "P"})
    install(place, "plug_f", "", {"same": "P"})
    with pytest.raises(ConfigError, match="the distributions plug_e and plug_f both have a plugin of this name"):
        find("same")
