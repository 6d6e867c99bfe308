"""Hides configured secrets in text of a server: what it was given may come back in what it says of itself. Pure.

Which of the configured values (environment, headers, arguments, what is behind the host of an address) are secrets:
- what has a name that says so (`key`, `token`, `secret`, `password`, `auth`, `credential`, `cookie`, `session`, ...),
  from 4 characters on;
- what looks like one whatever it is called: 12 letters and digits or more in a row and both among them, 20 letters of
  both cases in a row, or a shape that `redaction` knows;
- the password in an address.
None are switches, small numbers, levels of logging, and paths and addresses without anything like the above: operators
need to see them, and `true` or `3000` hidden wherever it occurs would spoil every answer.
Hidden are also the forms in which programs tend to print a secret: each line of several, escaped for JSON or a URL, as
base64, the token behind `Bearer`, the password inside a URL.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from urllib.parse import quote, quote_plus, urlsplit

from actors.transport.redaction import HIDDEN, without_secrets

MIN_CHARACTERS = 4
_NAME_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SECRET_WORDS = frozenset(
    {
        *("key", "keys", "token", "tokens", "secret", "secrets", "auth", "authorization", "bearer", "credential"),
        *("credentials", "cookie", "cookies", "session", "private", "dsn", "pat", "salt", "signature", "webhook"),
    }
)
_PASSWORD_WORDS = frozenset({"pass", "password", "passwd", "passphrase", "pwd", "pin"})
_SECRET_ENDS = ("key", "token", "secret", "password", "passwd")
_SWITCH = re.compile(r"(?i)true|false|yes|no|on|off|none|null|undefined|auto|enabled|disabled|required|optional")
_LEVEL = re.compile(r"(?i)trace|debug|info|notice|warn|warning|error|fatal|critical|silent|production|development|test")
_SMALL_NUMBER = re.compile(r"-?\d{1,6}(?:\.\d{1,6})?")
_PLACE = re.compile(r"(?:[a-z][a-z0-9+.-]{1,20}:/|~|\.{1,2}|[A-Za-z]:)?[/\\].*", re.DOTALL)
"""A path or an address."""
_RUN = re.compile(r"[A-Za-z0-9]{12,}+")
_LONG_RUN = 20


class Mask:
    """Replaces secrets by `***`. `values` are configured values by name, `arguments` those of a command line."""

    def __init__(self, values: Mapping[str, str], arguments: Iterable[str] = ()) -> None:
        given = [*values.items(), *by_option(arguments)]
        secrets = {form for name, value in given for part in secret_parts(name, value) for form in forms_of(part)}
        self._known = sorted(secrets, key=lambda form: (-len(form), form))
        self.longest = len(self._known[0].encode(errors="surrogateescape")) if self._known else 0

    def join(self, *others: Mask) -> Mask:
        """Return what hides the secrets of all."""
        whole = Mask({})
        known = {*self._known}.union(*(other._known for other in others))
        whole._known = sorted(known, key=lambda form: (-len(form), form))
        whole.longest = max((self.longest, *(other.longest for other in others)))
        return whole

    def hides(self, other: Mask) -> bool:
        """Say whether all is hidden that the other one hides."""
        return set(other._known) <= set(self._known)

    def begun_at_end(self, text: str) -> int:
        """Return how many characters at the end of a text may be the beginning of a secret that was cut off."""
        return max((_overlap(text, form) for form in self._known), default=0)

    def __call__(self, text: str) -> str:
        for form in self._known:
            if form in text:
                text = text.replace(form, HIDDEN)
        return text


def _overlap(text: str, form: str) -> int:
    """Return with how much of a form, but not all, a text ends; 0 for less than tells anything of it."""
    start = max(0, len(text) - len(form) + 1)
    while (start := text.find(form[:MIN_CHARACTERS], start)) >= 0:
        if form.startswith(text[start:]):
            return len(text) - start
        start += 1
    return 0


@lru_cache(maxsize=1024)  # whatever hides the secrets of a server makes a mask of its own, at each of its starts
def secret_parts(name: str, value: str) -> tuple[str, ...]:
    """Return what of a configured value is secret: all of it, a part, or nothing."""
    whole = value.strip()
    if len(whole) < MIN_CHARACTERS or not is_secret(name, whole):
        parts = [_password(whole)]
    else:
        parts = [value, whole, *value.splitlines(), _token(whole), _password(whole)]
    return tuple(part for part in parts if len(part.strip()) >= MIN_CHARACTERS)


def is_secret(name: str, value: str) -> bool:
    """Say whether a value of that name is one, however short it is."""
    words = {word.lower() for word in _NAME_WORDS.findall(name)}
    if _SWITCH.fullmatch(value):
        return False
    if words & _PASSWORD_WORDS:
        return True
    if _SMALL_NUMBER.fullmatch(value) or _LEVEL.fullmatch(value):
        return False
    if looks_secret(value):
        return True
    named = bool(words & _SECRET_WORDS) or any(word.endswith(_SECRET_ENDS) for word in words)
    return named and not _PLACE.fullmatch(value)


def says_secret(name: str) -> bool:
    """Say whether a name says that its value is a secret, whatever that is."""
    words = {word.lower() for word in _NAME_WORDS.findall(name)}
    return bool(words & (_SECRET_WORDS | _PASSWORD_WORDS)) or any(word.endswith(_SECRET_ENDS) for word in words)


def is_harmless(name: str, value: str) -> bool:
    """Say whether a value can be no secret, whatever it is for: a switch, a number, a level, a path, an address.

    Of any other value `is_secret` can only guess.
    """
    if is_secret(name, value):
        return False
    if _SMALL_NUMBER.fullmatch(value):
        return not is_secret(name, "value")
    return not value or any(form.fullmatch(value) for form in (_SWITCH, _LEVEL, _PLACE))


def looks_secret(value: str) -> bool:
    """Say whether a value gives itself away, whatever it is called."""
    return any(_is_random(run) for run in _RUN.findall(value)) or without_secrets(value) != value


def _is_random(run: str) -> bool:
    if run.isalpha():
        return len(run) >= _LONG_RUN and not run.islower() and not run.isupper()
    return not run.isdigit()


def by_option(arguments: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the arguments of a command line, each with the option it belongs to."""
    option = ""
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if equals and name.startswith("-"):
            yield name, value
            option = ""
        elif argument.startswith("-"):
            option = argument
        else:
            yield option, argument
            option = ""


def forms_of(plain: str) -> Iterator[str]:
    """Yield how programs tend to print a secret."""
    data = plain.encode(errors="surrogateescape")
    yield plain
    yield quote(data, safe="")
    yield quote_plus(data)
    yield base64.b64encode(data).decode().rstrip("=")
    yield base64.urlsafe_b64encode(data).decode().rstrip("=")
    yield repr(plain)[1:-1]
    yield json.dumps(plain)[1:-1]
    yield json.dumps(plain, ensure_ascii=False)[1:-1]


def _token(value: str) -> str:
    words = value.split()
    return words[1] if len(words) == 2 else ""


def _password(value: str) -> str:
    try:
        return urlsplit(value).password or ""
    except ValueError:
        return ""
