"""The object `plugins`: options have the types that a plugin declares, and a mistake has its file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from actors.errors import ConfigError
from supervisor.config import Configuration
from supervisor.config.expansion import DEFAULT
from supervisor.config.load import parse
from supervisor.config.provenance import EffectiveValue, explain_daemon
from supervisor.plugins.contract import PluginOptions

SECRET = "hunter2"


class Rule(PluginOptions, frozen=True, kw_only=True):
    tools: tuple[str, ...]
    effect: Literal["allow", "deny"] = "allow"


class AllOptions(PluginOptions, frozen=True, kw_only=True):
    rules: tuple[Rule, ...] = ()
    reason: Annotated[str, Meta(max_length=10)] = ""
    most: Annotated[int, Meta(ge=1)] = 1
    odd: bool = False

    def __post_init__(self) -> None:
        if self.reason == "bad":
            raise ValueError("the reason is not a good one")
        if self.odd:
            raise KeyError(SECRET)


def options_of(name: str) -> type[Struct]:
    if name == "none":
        return PluginOptions
    if name != "all":
        raise ConfigError("no plugin of this name is installed", hint="did you mean all?")
    return AllOptions


def read(plugins: Any, **environ: str) -> Configuration:
    text = json.dumps({"mcpServers": {}, "supervisor": {"plugins": plugins}}, indent=1)
    return parse(text, Path("mcp.json"), environ, options_of=options_of)


def test_options_are_read_with_variables_filled_in_and_comments_left_out() -> None:
    plugins = {"none": {}, "_off": {"x": 1}, "all": {"//": "why", "rules": [{"tools": ["${env:T}"]}], "reason": "no"}}
    settings = read(plugins, T="a:*").settings
    assert [*settings.plugins] == ["none", "all"]
    assert settings.plugins["all"].options == {"rules": [{"tools": ["a:*"]}], "reason": "no"}


@pytest.mark.parametrize(
    ("plugins", "line", "said"),
    [
        ({"al": {}}, 5, "supervisor.plugins.al: no plugin of this name is installed (did you mean all?)"),
        ({"all": {"reson": 1}}, 6, 'supervisor.plugins.all.reson: unknown key (did you mean "reason"?)'),
        ({"none": {"a": 1}}, 6, "supervisor.plugins.none.a: unknown key (it takes no options)"),
        ({"all": {"zzz": 1}}, 6, "supervisor.plugins.all.zzz: unknown key (it takes rules, reason, most, odd)"),
        ({"all": 7}, 5, "supervisor.plugins.all: must be an object"),
        ({"all": {"most": SECRET}}, 6, "supervisor.plugins.all.most: must be a whole number"),
        ({"all": {"most": 0}}, 6, "supervisor.plugins.all.most: must be a whole number, at least 1"),
        (
            {"all": {"reason": SECRET * 3}},
            6,
            "supervisor.plugins.all.reason: must be a string of at most 10 characters",
        ),
        ({"all": {"reason": "bad"}}, 5, "supervisor.plugins.all: the reason is not a good one"),
        ({"all": {"odd": True}}, 5, "its options cannot be checked (KeyError)"),
        ({"all": {"rules": [{"tools": []}, {}]}}, 10, 'plugins.all.rules[1]: the key "tools" is missing'),
        ({"all": {"rules": [{"tools": [7]}]}}, 9, "plugins.all.rules[0].tools[0]: must be a string"),
        ({"all": {"rules": [{"tools": [], "to": 1}]}}, 9, "plugins.all.rules[0].to: unknown key"),
        (
            {"all": {"rules": [{"tools": [], "effect": SECRET}]}},
            9,
            "plugins.all.rules[0].effect: is none of the values that it can have",
        ),
        ({"all": {"reason": "${env:NO}"}}, 5, "supervisor.plugins.all: "),
    ],
)
def test_a_mistake_has_its_file_line_and_key_and_never_the_value(plugins: Any, line: int, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(plugins)
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)
    assert (caught.value.path, caught.value.line) == ("mcp.json", line)


def test_no_option_is_shown_where_settings_are_explained() -> None:
    configuration = read({"all": {"reason": SECRET}})
    nothing = EffectiveValue(key="data_dir", value="", origin=DEFAULT)
    shown = {each.key: each.value for each in explain_daemon(configuration, nothing, {})}
    assert list(shown["plugins"]) == ["all"]
    assert SECRET not in str(shown) + repr(configuration.settings.plugins)
