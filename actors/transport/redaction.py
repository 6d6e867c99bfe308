"""Hides secrets in text of a server: what looks like one, whoever gave it to the server, and what is configured. Pure.

A `Mask` hides the values that are configured; the rest hides what gives itself away by its shape, wherever it comes
from: tokens with a published prefix, what follows `Authorization` or `password=`, passwords in addresses, private keys.
- A shape must be unmistakable: a log that hides what is none is of no use. A value behind a word like `token:` counts
  only if it has a digit among letters, follows a `=`, or an option such as `--token`: but not the word that says that
  this is one, as in "the --token flag".
- One pass finds the places where a secret may begin; there, a bounded number of characters is looked at.
Sources: RFC 6750 2.1 and RFC 7617 2 (Bearer, Basic), RFC 7519 3 (JWT), RFC 7468 (PEM), RFC 3986 3.2.1 (userinfo); the
prefixes are those their makers publish: GitHub, GitLab, Slack, AWS (IAM identifiers), Google, OpenAI, Anthropic,
Stripe, Hugging Face, npm, PyPI.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from urllib.parse import quote, quote_plus, urlsplit

HIDDEN = "***"


class Confidential:
    """A base of values with secrets: what is logged of one, or stands in a traceback, shows nothing of it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


_PREFIXED: dict[str, str] = {
    "sk-": r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{16}",  # OpenAI, Anthropic and others
    "k_live_": r"(?<=[rs])k_live_[A-Za-z0-9]{10}",  # Stripe
    "k_test_": r"(?<=[rs])k_test_[A-Za-z0-9]{10}",
    **{f"gh{kind}_": rf"gh{kind}_[A-Za-z0-9]{{20}}" for kind in "pousr"},  # GitHub
    "github_pat_": r"github_pat_[A-Za-z0-9_]{20}",
    "glpat-": r"glpat-[A-Za-z0-9_-]{16}",  # GitLab
    "xox": r"(?<![A-Za-z0-9])xox[a-z]-[A-Za-z0-9-]{10}",  # Slack
    "xapp-": r"(?<![A-Za-z0-9])xapp-[A-Za-z0-9-]{10}",
    "AKIA": r"(?<![A-Za-z0-9])AKIA[A-Z0-9]{16}\b",  # AWS
    "ASIA": r"(?<![A-Za-z0-9])ASIA[A-Z0-9]{16}\b",
    "AIza": r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{35}",  # Google
    "ya29.": r"(?<![A-Za-z0-9])ya29\.[A-Za-z0-9_-]{20}",
    "hf_": r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{20}",  # Hugging Face
    "npm_": r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{30}",
    "pypi-": r"(?<![A-Za-z0-9])pypi-[A-Za-z0-9_-]{30}",
    "eyJ": r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,2000}+\.[A-Za-z0-9_-]{8}",  # JWT
}
"""No letter and no digit stands before those that may be the end of a word; anything may before the others."""
_WORDS = (
    *("api_key", "api-key", "apikey", "access_key", "access-key", "accesskey", "private_key", "private-key"),
    *("token", "secret", "password", "passwd", "passphrase", "pwd", "credentials", "credential"),
)
_HEADERS = ("authorization", "cookie")
_SCHEMES = ("bearer", "basic")
_EXACT_HINTS = ("-----BEGIN ", "://", *_PREFIXED)
_LOWER_HINTS = (*_HEADERS, *_SCHEMES, *_WORDS, "key=")
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
MAX_PLACES = 500
"""Where more than so many secrets may begin in a text, what comes then is hidden: it is not what programs
say in a few lines."""

_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
_PREFIX = {hint: re.compile(pattern) for hint, pattern in _PREFIXED.items()}
_BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
_USERINFO = re.compile(r"://[^\s/:@\"'<>]{0,100}:([^\s/@\"'<>]{1,200})@")
_HEADER = re.compile(r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:[A-Za-z]{1,20}\s{1,3})?(?=([^\s\"',;]))")
_SPACE = re.compile(r"\s{1,3}")
_ASSIGNED = re.compile(r"[\"']?=[\"']?(?!(?i:true|false|null|none|undefined)\b)")
_SAID = re.compile(r"[\"']?\s{0,3}(?:=>|[:=])\s{0,3}[\"']?")
_GIVEN = re.compile(r"\s{1,3}(?!(?i:flag|option|argument|parameter|switch|setting)(?:e?s)?[.,:;!?)]{0,2}(?:\s|\Z))")
_OPTION = re.compile(r"--[A-Za-z_-]{0,30}\Z")
_VALUE = re.compile(r"[^\s\"'<>,;&|(){}\[\]\\]{1,256}+")
_REST = re.compile(r"[^\s\"'<>,;&|(){}\[\]\\]*+")
_LINE = re.compile(r"[^\r\n]*+")
_FULL = r"[A-Za-z0-9+/]{64}(?:[A-Za-z0-9+/]{6}){0,2}\r?$"
"""A full line of a key: PEM has 64 characters in it, OpenSSH 70, MIME 76."""
_SHORT = r"[A-Za-z0-9+/]{1,75}={0,2}\r?$"
_KEY_LINES = re.compile(rf"^{_FULL}(?:\n{_FULL})*(?:\n{_SHORT})?", re.MULTILINE)
_LAST_LINE = re.compile(rf"^{_SHORT}(?=\n-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY)", re.MULTILINE)
_KEY_TEXT = re.compile(rb"[A-Za-z0-9+/=]{1,76}|[A-Za-z0-9-]{1,30}: [^\n]{0,100}")
"""What stands in a private key: base64, and headers (RFC 1421) if it is encrypted."""
_MAX_KEY_LINES = 256
_DIGIT = re.compile(r"[0-9]")
_LETTER = re.compile(r"[A-Za-z]")
_LEAST = 8


def without_secrets(text: str) -> str:
    places = _places(text)
    parts: list[str] = []
    done = 0
    for place, hint in places[:MAX_PLACES]:
        start, end = _secret(text, place, hint) if place >= done else (0, 0)
        if end > start:
            parts += [text[done:start], HIDDEN]
            done = end
    if len(places) > MAX_PLACES:
        parts += [text[done : max(done, places[MAX_PLACES][0])], HIDDEN]
        done = len(text)
    shown = _LAST_LINE.sub(HIDDEN, "".join([*parts, text[done:]]))
    return _KEY_LINES.sub(_without_key_lines, shown)


class KeyLines:
    """Tells which lines of an output are inside of a private key, for whoever gets and shows each line by itself."""

    def __init__(self) -> None:
        self._left = 0

    def inside(self, line: bytes) -> bool:
        """Take the next line; return whether it is in a key that began in an earlier one."""
        if b"-----" in line:
            text = line.decode(errors="replace")
            self._left = _MAX_KEY_LINES if _BLOCK.search(text) and not _BLOCK_END.search(text) else 0
            return False
        self._left = self._left - 1 if self._left and _KEY_TEXT.fullmatch(line) else 0
        return self._left > 0


def _places(text: str) -> list[tuple[int, str]]:
    """Return where a secret may begin, in order, and what hints at it."""
    lowered = text.translate(_LOWER)
    searched = [(text, _EXACT_HINTS), (lowered, _LOWER_HINTS)]
    hinting = [(form, hint) for form, hints in searched for hint in hints if hint in form]
    return sorted((match.start(), hint) for form, hint in hinting for match in re.finditer(re.escape(hint), form))


def _without_key_lines(lines: re.Match[str]) -> str:
    """Lines as PEM has them, when the beginning of the key is out of sight; digests are of one case."""
    text = lines.group()
    return text if text in (text.lower(), text.upper()) else "\n".join([HIDDEN] * (text.count("\n") + 1))


def _secret(text: str, start: int, hint: str) -> tuple[int, int]:
    """Return where the secret that is hinted at begins and ends; nothing if there is none."""
    end = start + len(hint)
    if hint in _PREFIXED:
        prefix = _PREFIX[hint].match(text, start)
        return (start, _until(text, prefix.end())) if prefix else (0, 0)
    if hint == "://":
        userinfo = _USERINFO.match(text, start)
        return userinfo.span(1) if userinfo else (0, 0)
    if hint == "-----BEGIN ":
        return _block(text, start)
    if hint in _HEADERS:
        header = _HEADER.match(text, end)
        pattern = _LINE if hint == "cookie" else _REST
        return (header.start(1), _until(text, header.start(1), pattern)) if header else (0, 0)
    if hint in _SCHEMES:
        return _likely(text, _SPACE.match(text, end), certain=False)
    if hint == "key=":
        return _likely(text, _ASSIGNED.match(text, end - 1), certain=False)
    return _value_of_word(text, start, end)


def _block(text: str, start: int) -> tuple[int, int]:
    """Return where a private key ends: where it says so, or with the text."""
    if not _BLOCK.match(text, start):
        return 0, 0
    end = _BLOCK_END.search(text, start)
    return start, end.end() if end else len(text)


def _value_of_word(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where the value is that a word like `password` announces: `password=x`, `password: x1`, `--password x`."""
    if lead := _ASSIGNED.match(text, end):
        return _likely(text, lead, certain=True)
    if lead := _SAID.match(text, end):
        return _likely(text, lead, certain=False)
    option = _OPTION.search(text[max(0, start - 32) : start])
    return _likely(text, _GIVEN.match(text, end), certain=True) if option else (0, 0)


def _likely(text: str, lead: re.Match[str] | None, *, certain: bool) -> tuple[int, int]:
    """Return the value behind a lead, if it is a secret: for `certain`, or as it has digits among letters."""
    value = _VALUE.match(text, lead.end()) if lead else None
    if value is None or value.group().startswith(HIDDEN):
        return 0, 0
    candidate = value.group()
    mixed = len(candidate) >= _LEAST and _DIGIT.search(candidate) is not None and _LETTER.search(candidate) is not None
    return (value.start(), _until(text, value.end())) if certain or mixed else (0, 0)


def _until(text: str, start: int, pattern: re.Pattern[str] = _REST) -> int:
    rest = pattern.match(text, start)
    return rest.end() if rest else start


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
    """Hides configured secrets in text of a server: what it was given may come back in what it says of itself.

    Which of the configured values (environment, headers, arguments, what is behind the host of an address) are secrets:
    - what has a name that says so (`key`, `token`, `secret`, `password`, `auth`, `credential`, `cookie`, `session`,
      ...), from 4 characters on;
    - what looks like one whatever it is called: 12 letters and digits or more in a row and both among them, 20 letters
      of both cases in a row, or a shape that gives itself away;
    - the password in an address.

    None are switches, small numbers, levels of logging, and paths and addresses without anything like the above:
    operators need to see them, and `true` or `3000` hidden wherever it occurs would spoil every answer. Hidden are also
    the forms in which programs tend to print a secret: each line of several, escaped for JSON or a URL, as base64, the
    token behind `Bearer`, the password inside a URL.

    Replaces secrets by `***`. `values` are configured values by name, `arguments` those of a command line.
    """

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
