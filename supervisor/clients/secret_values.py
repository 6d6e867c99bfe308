"""Which values of an entry are secrets, and an entry that shows none of them. Pure.

What somebody wrote as a value of the environment or of a header counts as one, whatever it looks like; of addresses the
user, the password and the values of a query; of arguments what gives itself away (`actors/transport/redaction.py`).
What only refers to a variable is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from actors.transport.redaction import HIDDEN, Mask, without_secrets
from supervisor.clients.doors import BY_EFFECT, EXECUTE, PROFILE
from supervisor.config.expansion import has_reference, pieces

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
