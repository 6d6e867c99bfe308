"""Hides what looks like a secret in text of a server, whoever gave it to the server. Pure.

`mask` hides the values that are configured; this hides what gives itself away by its shape, wherever it comes from:
tokens with a published prefix, what follows `Authorization` or `password=`, passwords in addresses, private keys.
- A shape must be unmistakable: a log that hides what is none is of no use. A value behind a word like `token:` counts
  only if it has a digit among letters, follows a `=`, or an option such as `--token`: but not the word that says that
  this is one, as in "the --token flag".
- One pass finds the places where a secret may begin; there, a bounded number of characters is looked at.
Sources: RFC 6750 2.1 and RFC 7617 2 (Bearer, Basic), RFC 7519 3 (JWT), RFC 7468 (PEM), RFC 3986 3.2.1 (userinfo); the
prefixes are those their makers publish: GitHub, GitLab, Slack, AWS (IAM identifiers), Google, OpenAI, Anthropic,
Stripe, Hugging Face, npm, PyPI.
"""

from __future__ import annotations

import re

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
