"""The files of clients as texts, JSON with comments or TOML: read, changed by an entry, and shown without secrets.
Pure.

A change is shown on a copy in which every other value and comment is hidden: beside the servers, clients keep tokens.

What somebody wrote as a value of the environment or of a header counts as a secret, whatever it looks like; of
addresses the user, the password and the values of a query; of arguments what gives itself away
(`actors/transport/redaction.py`). What only refers to a variable is none.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import msgspec

from actors.errors import ConfigError
from actors.transport.redaction import HIDDEN, Mask, without_secrets
from supervisor.clients.doors import ADDRESSES, BY_EFFECT, EXECUTE, PROFILE, is_like_ours
from supervisor.clients.toml_tables import headers, put_table, read_toml, remove_table
from supervisor.config.clients import Format
from supervisor.config.expansion import has_reference, pieces
from supervisor.config.jsonc import ConfigText, put, read_document, remove, show_path

_NAMED: Final = ("env", "headers")
_SCHEME: Final = re.compile(r"(?:bearer|basic|token)\s+\Z", re.IGNORECASE)
"""What stands before a credential, and by itself looks like one."""


def secrets_of(entry: Mapping[str, Any]) -> list[str]:
    """Return the names of what is secret in an entry of ours, such as `env.TOKEN`; never a value."""
    names = [f"{key}.{name}" for key in _NAMED for name, value in _members(entry, key) if _is_secret(value)]
    names += [f"args[{at}]" for at, (text, shown) in enumerate(_arguments(entry)) if text != shown]
    return names + [f"url ({part})" for part in _parts(entry.get("url"))]


def mask_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry with `***` for each secret."""
    masked = dict(entry)
    for key in _NAMED:
        if isinstance(entry.get(key), dict):
            masked[key] = {
                name: HIDDEN if not isinstance(value, str) or _is_secret(value) else _show_references(value)
                for name, value in entry[key].items()
            }
    if isinstance(entry.get("args"), list):
        masked["args"] = [shown for _, shown in _arguments(entry)]
    if isinstance(entry.get("url"), str) and _parts(entry["url"]):
        masked["url"] = _mask_url(entry["url"])
    return {key: _mask_rest(value) if key not in {*_NAMED, "args", "url"} else value for key, value in masked.items()}


def _members(entry: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    members = entry.get(key)
    return list(members.items()) if isinstance(members, dict) else []


def _is_secret(value: object) -> bool:
    return isinstance(value, str) and bool(value) and not has_reference(value)


def _arguments(entry: Mapping[str, Any]) -> list[tuple[object, object]]:
    """Return each argument, and how it is shown."""
    args = entry.get("args")
    if not isinstance(args, list):
        return []
    mask = Mask({}, (each for each in args if isinstance(each, str) and not has_reference(each)))

    def show(text: object) -> object:
        if not isinstance(text, str):
            return text
        return _mask_url(mask(text)) if _parts(text) else _show_references(mask(text))

    return [(each, show(each)) for each in args]


def _show_references(text: str) -> str:
    """Return a text without what looks like a secret; what refers to a variable is none, but its default may be."""
    shown = []
    for literal, name, default in pieces(text):
        scheme = _SCHEME.search(literal) if name else None
        cut = scheme.start() if scheme else len(literal)
        shown.append(without_secrets(literal[:cut]) + literal[cut:])
        if name:
            visible = without_secrets(f"{name}={default}").removeprefix(f"{name}=")
            shown.append(f"${{{name}:-{visible}}}" if default else f"${{{name}}}")
    return "".join(shown)


def _parts(url: object) -> list[str]:
    """Return which parts of an address are secret."""
    if not isinstance(url, str) or "://" not in url:
        return []
    try:
        address = urlsplit(url)
    except ValueError:
        return ["unreadable"]
    user = ["user"] if "@" in address.netloc and _is_secret(address.netloc.rpartition("@")[0]) else []
    return user + [f"?{name}" for name, value in parse_qsl(address.query) if _is_hidden(name, value)]


def _is_hidden(name: str, value: str) -> bool:
    """Say whether the value of a parameter of an address is a secret; which door or profile of ours it is, is none."""
    is_ours = (name, value) == (EXECUTE, BY_EFFECT) or (name == PROFILE and without_secrets(value) == value)
    return _is_secret(value) and not is_ours


def _mask_url(url: str) -> str:
    try:
        address = urlsplit(url)
    except ValueError:
        return HIDDEN
    user, at, host = address.netloc.rpartition("@")
    query = "&".join(map(_mask_member, address.query.split("&")))
    netloc = f"{HIDDEN if _is_secret(user) else user}{at}{host}"
    return urlunsplit((address.scheme, netloc, address.path, query, address.fragment))


def _mask_member(member: str) -> str:
    """Return a member of a query as it stands there, with `***` for a value that is a secret."""
    hidden = any(_is_hidden(name, value) for name, value in parse_qsl(member))
    return f"{member.partition('=')[0]}={HIDDEN}" if hidden else member


def _mask_rest(value: Any) -> Any:
    """Return a value of another key, of which nothing is known, without what looks like a secret."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, list):
        return [_mask_rest(each) for each in value]
    if isinstance(value, dict):
        return {key: _mask_rest(each) for key, each in value.items()}
    return value


_EMPTY: Final[Mapping[Format, str]] = {"json": "{}\n", "toml": ""}
"""A file in which nothing stands yet."""
_CONTEXT_LINES: Final = 3

_JSON_TOKEN = re.compile(
    r'(//)[^\n]*?(?=\r?\n|\Z)|(/\*).*?\*/|("(?:[^"\\]|\\.)*")((?:\s|//[^\n]*|/\*.*?\*/)*+:)?', re.DOTALL
)
_TOML_TOKEN = re.compile(
    r'(#)[^\n\r]*|(?:"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')([ \t]*[=.])?', re.DOTALL
)
_REFERENCE = re.compile(r"""["'](?:[Bb]earer |[Bb]asic )?(?:\$\{(?:env:)?\w+\}|\$[A-Z_][A-Z0-9_]*|\{env:\w+\})["']""")
"""A value that only refers to a variable, in the spelling of any client: it is no secret."""
_SHOWN: Final = frozenset({"command", "type"})
"""Keys whose values help to find one's way, and are no secrets."""
_ARGS: Final = "args"
_JSON_ARGS = re.compile(r'"args"\s*:\s*\[\s*\Z')
_TOML_ARGS = re.compile(r"(?:\A|[\n{,])[ \t]*args[ \t]*=[ \t]*\[\s*\Z")
_TOML_KEY = re.compile(r"""(?:\A|[\n{,])[ \t]*["']?([\w-]+)["']?[ \t]*=[ \t]*\Z""")
_MAX_HEAD_CHARS: Final = 200
_BRACKET = re.compile(r"[][{}]")

Way = tuple[str, ...]


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """One change: the entry at the keys `where` becomes `entry`, which is shown as `shown`; None takes it out."""

    where: Way
    entry: dict[str, Any] | None = None
    shown: dict[str, Any] | None = None


def read_servers(form: Format, text: str, where: Way, path: str) -> dict[str, Any]:
    """Return the servers at the keys `where`, none if nothing is there. Raises `ConfigError` with the line."""
    document = _read(form, text, path)
    for way, line in document.duplicates:
        if way[: len(where)] == where[: len(way)]:
            raise ConfigError("the key is written twice", path=path, key=show_path(way), line=line, hint="remove one")
    value = document.value
    for depth in range(len(where) + 1):
        if not isinstance(value, dict):
            at = where[:depth]
            raise ConfigError(
                "must be an object", path=path, key=show_path(at), line=document.line(at), hint="correct it first"
            )
        value = value.get(where[depth], {}) if depth < len(where) else value
    servers: dict[str, Any] = value
    return servers


def _read(form: Format, text: str, path: str) -> ConfigText:
    if form == "toml":
        return ConfigText(value=_as_json(read_toml(text, path)), lines={})
    return read_document(text if text.removeprefix("\ufeff").strip() else _EMPTY[form], path)


def _as_json(value: Any) -> Any:
    """Return a value of TOML with texts for what JSON has not got: dates, times, numbers that are none."""
    if isinstance(value, dict):
        return {key: _as_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_json(each) for each in value]
    plain = value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    return value if plain else str(value)


def edit(form: Format, text: str, edits: Iterable[Edit], path: str) -> str:
    """Return the text with the changes, all else as it is. Raises `ConfigError` if that cannot be done."""
    return _apply(form, text, ((each.where, each.entry) for each in edits), path)


def describe_edits(form: Format, text: str, edits: list[Edit], path: str, *, back: bool = False) -> Iterator[str]:
    """Yield the lines of a unified diff of the changes, with nothing secret in them. Raises as `edit` does.

    `back`: of the way back from them to the text.
    """
    before = _mask(form, text)
    after = _apply(form, before, ((each.where, each.shown) for each in edits), path)
    old, new = (after, before) if back else (before, after)
    lines = (old.splitlines(), new.splitlines())
    return difflib.unified_diff(*lines, fromfile=path, tofile=path, n=_CONTEXT_LINES, lineterm="")


def hide_values(value: Any, key: str = "") -> Any:
    """Return a value of a client's file as a change shows it: texts are hidden but those to find one's way by."""
    if isinstance(value, dict):
        return {name: hide_values(each, name) for name, each in value.items()}
    if isinstance(value, list):
        plain = key == _ARGS and all(isinstance(each, str) for each in value)
        return mask_entry({_ARGS: value})[_ARGS] if plain else [hide_values(each) for each in value]
    if not isinstance(value, str):
        return value
    return _shown(key, value)


def _shown(key: str, value: str) -> str:
    """Return the text under a key as a change shows it: an address only if its path can have no secret."""
    if key in _SHOWN:
        return without_secrets(value)
    return str(mask_entry({"url": value})["url"]) if key in ADDRESSES and is_like_ours(value) else HIDDEN


def _apply(form: Format, text: str, changes: Iterable[tuple[Way, dict[str, Any] | None]], path: str) -> str:
    if not text.removeprefix("\ufeff").strip():
        text += _EMPTY[form]
    for where, entry in changes:
        if form == "toml":
            text = remove_table(text, where, path) if entry is None else put_table(text, where, entry, path)
        else:
            text = remove(text, where, path) if entry is None else put(text, where, entry, path)
    return text


def _mask(form: Format, text: str) -> str:
    if form == "toml":
        lines = [(begin, begin + len(text[begin:].partition("\n")[0])) for begin, _ in headers(text)]
        tokens = [*_TOML_TOKEN.finditer(text)]
        known = _tokens_of_arguments(text, tokens, _TOML_ARGS, _read_toml_text)
        return _TOML_TOKEN.sub(lambda token: known.get(token.start()) or _mask_toml(token, lines, text), text)
    parts: list[str] = []
    at, key = 0, ""
    tokens = [*_JSON_TOKEN.finditer(text)]
    known = _tokens_of_arguments(text, tokens, _JSON_ARGS, json.loads)
    for token in tokens:
        parts += [text[at : token.start()], known.get(token.start()) or _mask_json(token, key)]
        at, key = token.end(), token[3][1:-1] if token[4] else ""
    return "".join([*parts, text[at:]])


def _tokens_of_arguments(
    text: str, tokens: list[re.Match[str]], head: re.Pattern[str], read: Callable[[str], Any]
) -> dict[int, str]:
    """Return how the arguments of servers are shown, by where each stands; none of a list that has more than texts."""
    shown: dict[int, str] = {}
    for at, first in enumerate(tokens):
        if first[0][0] not in "\"'" or not head.search(text[max(0, first.start() - _MAX_HEAD_CHARS) : first.start()]):
            continue
        listed = [first]
        for before, token in zip(tokens[at:], tokens[at + 1 :], strict=False):
            if _BRACKET.search(text[before.end() : token.start()]):
                break
            listed += [token] if token[0][0] in "\"'" else []
        try:
            written = [read(token[0]) for token in listed]
        except ValueError:
            continue
        masked = mask_entry({_ARGS: written})[_ARGS]
        for token, own, other in zip(listed, written, masked, strict=True):
            shown[token.start()] = token[0] if own == other else json.dumps(other, ensure_ascii=False)
    return shown


def _mask_json(token: re.Match[str], key: str) -> str:
    if token[1] or token[2]:
        return "// ..." if token[1] else "/* ... */"
    if token[4]:
        return f"{token[3]}:"
    if _REFERENCE.fullmatch(token[0]):
        return token[0]
    return _show_token(token[0], key, json.loads)


def _mask_toml(token: re.Match[str], lines: list[tuple[int, int]], text: str) -> str:
    if token[1]:
        return "# ..."
    in_header = any(begin <= token.start() < end for begin, end in lines)
    is_open = in_header or token[2] or _REFERENCE.fullmatch(token[0])
    if is_open:
        return token[0]
    key = _TOML_KEY.search(text[max(0, token.start() - _MAX_HEAD_CHARS) : token.start()])
    return _show_token(token[0], key[1] if key else "", _read_toml_text)


def _read_toml_text(written: str) -> Any:
    return tomllib.loads(f"v = {written}")["v"]


def _show_token(written: str, key: str, read: Callable[[str], Any]) -> str:
    """Return a text of a file, as it is `written` there, as a change shows it."""
    try:
        own = read(written)
    except ValueError:
        return json.dumps(HIDDEN)
    shown = _shown(key, own)
    return written if shown == own else json.dumps(shown, ensure_ascii=False)
