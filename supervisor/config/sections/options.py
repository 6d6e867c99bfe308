"""The object `plugins` of a configuration: which plugins are loaded, in which order, with which options. Pure.

The options of a plugin have the types that it declares. A fault of them is one of the whole file: with another plugin,
or none, calls would pass that must not. A message says what is expected, never what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from actors.errors import ConfigError
from actors.protocol.wire.json import fault
from actors.transport.redaction import Confidential
from supervisor.config.syntax.jsonc import KeyPath
from supervisor.config.syntax.keys import hint_of, is_comment
from supervisor.config.syntax.values import Problem

PLUGINS: Final = "plugins"
OptionsOf = Callable[[str], type[Struct]]
"""Gives the options of a plugin by its name. Imports it; raises `ConfigError` if there is no such plugin of any use."""


class PluginEntry(Confidential, Struct, frozen=True):
    """What the configuration says of one plugin: the options that it is made of, as JSON values."""

    options: dict[str, Any] = {}


def read_plugins(
    written: Mapping[str, Any], options_of: OptionsOf, expand: Callable[[str], str], problem: Problem
) -> dict[str, dict[str, Any]]:
    """Return the members of each plugin, objects as the file has them. `problem` takes keys from `supervisor` inwards.

    Variables in the texts are filled in.
    """
    read: dict[str, dict[str, Any]] = {}
    for name, members in written.items():
        if is_comment(name):
            continue
        place: KeyPath = (PLUGINS, name)
        try:
            declared = options_of(name)
            options = {key: _expand(value, expand) for key, value in members.items() if not is_comment(key)}
        except ConfigError as error:
            problem(place, error.message, error.hint)
            continue
        _check(declared, options, partial(_below, problem, place))
        read[name] = {"options": options}
    return read


def _below(problem: Problem, place: KeyPath, below: KeyPath, message: str, hint: str) -> None:
    problem((*place, *below), message, hint)


def _expand(value: Any, expand: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {key: _expand(each, expand) for key, each in value.items()}
    if isinstance(value, list):
        return [_expand(each, expand) for each in value]
    return expand(value) if isinstance(value, str) else value


def _check(declared: type[Struct], options: Mapping[str, Any], problem: Problem) -> None:
    """Record what is wrong with options: all unknown keys, else the first fault of a value."""
    known = [field.encode_name for field in structs.fields(declared)]
    unknown = [key for key in options if key not in known]
    for key in unknown:
        takes = f"it takes {', '.join(known)}" if known else "it takes no options"
        problem((key,), "unknown key", hint_of(key, known, takes))
    if unknown:
        return
    try:
        msgspec.convert(options, declared)
    except msgspec.ValidationError as error:
        problem(*fault(error), "")
    except Exception as error:  # noqa: BLE001 - the plugin's own checks are foreign code
        problem((), f"its options cannot be checked ({type(error).__name__})", "ask whoever wrote the plugin")
