"""Why a program ended, as far as what it wrote tells. Pure.

Each line is read for what it is (`Kind`), whatever program wrote it and wherever it stands. The cause is a line of the
highest kind that there is, with what belongs to it:
- Of equal lines the last one counts, as programs name an error last. npm names it first.
- Of an error with causes below it the deepest one is the reason.
- Whoever started a program that fails says that it failed, and programs explain their use: neither says why.
- Where no line names an error, the text is told from its end backwards.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from actors.transport.stdio.installer import Installer
from actors.transport.stdio.remedies import advice_on

MAX_WORDS_CHARS: Final = 200
_MAX_LINES: Final = 1000
"""So many are read of a text; more than is kept of an output."""
_READ_CHARS: Final = 300
"""So much of a line is read for what it is: more than is shown."""


class Kind(enum.IntEnum):
    """What a line is, the higher the more it tells of why the program ended."""

    NOISE = 0
    """Frames of a stack, source code, warnings of a package manager: part of whatever is around it."""
    USE = 1
    """A page that says how the program is used."""
    EVENT = 2
    """A line of a log that is about no error."""
    PLAIN = 3
    FAILED = 4
    """That something failed, and no word of why: `Command failed: ...`."""
    COMPLAINT = 5
    """Something is missing, wrong or refused, in words that any sentence may have."""
    ERROR = 6
    """An error, by its own name or by the level of its line."""


class Line(NamedTuple):
    """`says`: without what stands before every line of its kind; `written`: as it was, on one line."""

    kind: Kind
    says: str
    written: str


class Cause(msgspec.Struct, frozen=True):
    """`words`: one line of at most 200 characters, or none; `advice`: what to do, where that is known."""

    words: str = ""
    advice: str = ""
    kind: Kind = Kind.NOISE


_COLOUR: Final = re.compile(r"\\x1b\[[0-9;?]*[A-Za-z]")
"""As an output is shown: whatever is unprintable is escaped."""
_GROUP: Final = re.compile(r"\s+(?:\| )*\|(?: |$)|\s+(?:\| )*\+[-+ \d]*-*$")
"""Before each line of an exception group of Python, and between its parts."""
_TIME: Final = re.compile(r"\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d[\d.,]*(?:Z|[+-]\d\d:?\d\d)?\]?[\s:-]+")
_NPM: Final = re.compile(r"npm (?:error|ERR!)(?: (?:\d{3}|notarget|gyp ERR!)(?!\S))?\s*", re.IGNORECASE)
_CAUSE: Final = re.compile(r"(?:\[cause\]|cause|caused by):|[├╰]─▶", re.IGNORECASE)
"""The cause of the error above it: of Node.js, uv (now and before), and of programs in Rust and Java."""
_FRAME_WITH_FIELDS: Final = re.compile(r"\s+at .*\{$")
_HEADING: Final = re.compile(
    r"(?:[\w ]+ )?(?:options|commands|arguments|flags|examples?|environment)(?: [\w ]+)?:$", re.IGNORECASE
)
_ROW: Final = re.compile(r"\s+(?:-{1,2}\w|\S+(?: \S+)*\s{2,}\S)")
"""An option, or a word with what it means: of a page of usage."""

_NOISE: Final = re.compile(
    r"\W*$|npm (?:warn|notice|verb)|npm (?:error|ERR!) (?:a complete log|    |gyp ERR! (?!stack Error))|\s+at "
    r"|Node\.js v\d"
    r"|\(node:\d+\)|\(use `node --trace|note: run with `RUST_BACKTRACE|\s*\^+\s*$"
    r"|(?:Installed|Resolved|Prepared|Audited|Uninstalled) \d+ package|\s*(?:Downloading|Downloaded|Building|Built) \S+"
    r"|(?:The above|During handling of the above) exception|\S+:\d+(?::\d+)?$",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(r"(?:\S*:\d+: )?\w*warning: ", re.IGNORECASE)
_ERROR: Final = re.compile(
    r"^\u00d7|(?:^|[\s\[(:])(?:fatal|panic|[\w.]{0,80}(?:error|exception))\b[^:\"'`=]{0,40}:|\bpanicked at "
)
_LEVEL: Final = re.compile(
    r"(?:[^\sA-Z]?\S* ){0,4}?[^\w\s]{0,2}"
    r"(?:(FATAL|CRITICAL|ERROR|ERR|SEVERE|PANIC|EMERG|ALERT)|WARN|WARNING|INFO|NOTICE|DEBUG|TRACE|VERBOSE)(?![\w'\"-])"
    r"|(?:\[\S*\] ?){0,2}\[(?:(fatal|critical|error)|warn|warning|info|debug)\]",
)
_FAILED: Final = re.compile(
    r"command failed\b|\bexit(?:ed|s|ing)?\b.{0,40}\b(?:code|status)\b|\breturned non-zero exit|^exit status \d"
    r"|\belifecycle\b|lifecycle script .*failed|unhandled errors in a taskgroup|^systemexit\b|\bconnection closed\W*$"
    r"|^(?:code \S+|path \S.*|command \S.*|errno \S+|syscall \S+)$"
)
_FAILED_ALONE: Final = re.compile(
    r"\W*(?:\S{1,30}[:\]] )?"
    r"(?:(?:fatal |unexpected |unhandled |uncaught |startup |server )*(?:error|exception|rejection|failure)"
    r"|(?:failed|unable) to (?:start|run|initiali[sz]e|launch|boot)(?: up)?(?: the)?(?: \w+){0,3}"
    r"|(?:\w+ ){0,3}(?:startup|start|initiali[sz]ation) failed|(?:\w+ )?(?:crashed|failed|aborted|terminated))"
    r"(?: (?:in|of|during) \S+)?\W*$"
)
"""All that a line says: a longer one says more."""
_FAILED_CHARS: Final = 120
_WANT: Final = re.compile(
    r"\b(?:must|missing|required?s?|invalid|unknown|no such|denied|refused|forbidden|unauthorized|unsupported"
    r"|not (?:set|found|provided|defined|configured|installed|supported|specified|exist|a valid|allowed|authorized)"
    r"|unrecognized|expected|is empty|does not exist|timed out|already in use)\b"
)
_COMPLAINT: Final = re.compile(rf"{_WANT.pattern}|\b(?:unable|cannot|can't|couldn't|could not|failed|please)\b")
_PYTHON: Final = re.compile(
    r"current Python version \(([\d.]+)\) does not satisfy Python ?([<>=!~]+)(\d+)\.(\d+)|"
    r"requires a different Python: ([\d.]+) not in '([<>=!~]+)(\d+)\.(\d+)"
)
"""What uv and pip say of a package that does not run with the Python that they found."""

_JSON: Final = re.compile(r'"([\w@.]{1,20})"\s*:\s*(?:"((?:[^"\\]|\\.)*+)|(\d{1,4})\b)')
_BEFORE_JSON: Final = 60
_LOGFMT: Final = re.compile(r'(?<!\S)([\w@.]{1,20})=(?:"((?:[^"\\]|\\.)*+)|(\S*))')
_LEVEL_NAMES: Final = ("level", "severity", "levelname", "lvl", "log.level", "@l")
_MESSAGES: Final = ("msg", "message", "event", "@m", "@mt")
_ERRORS: Final = ("err", "error", "exception", "reason", "cause", "@x")
_BAD: Final = re.compile(r"d?panic|fatal|crit(?:ical)?|err(?:or)?|severe|emerg(?:ency)?|alert|[5-9]\d", re.IGNORECASE)
"""Levels of errors; pino and bunyan write 50 and 60."""


def cause_of(text: str, installer: Installer | None = None) -> Cause:
    """Return why a program ended that wrote this. `installer`: what started it, and may have installed it before."""
    if version := _PYTHON.search(" ".join(text.split())):
        return _other_python(version)
    lines = list(_read(text.splitlines()[-_MAX_LINES:]))
    newest = {line.says: line for line in reversed(lines) if line.kind}  # what is said again and again is told once
    said = [*newest.values()][::-1]
    if not said:
        return Cause()
    best = max(line.kind for line in said)
    told: Sequence[Line] = said  # of a page of usage, which has its point first
    if best > Kind.PLAIN:
        told = _group(said, best)
    elif best > Kind.USE:
        told = _end_of([line for line in said if line.kind > Kind.USE])
    words = [line.says for line in told]
    if is_npm := bool(_NPM.match(told[0].written)):
        words[0] = f"npm error: {words[0]}"
    evidence = (
        [line.written for line in lines if _NPM.match(line.written)] if is_npm else [line.written for line in told]
    )
    advice = advice_on("\n".join(evidence), [line.written for line in lines], installer)
    return Cause(shortened(words), advice, best)


def shortened(lines: Sequence[str]) -> str:
    """Return lines as one, cut where it is too long."""
    words = " | ".join(lines)
    return words if len(words) <= MAX_WORDS_CHARS else words[: MAX_WORDS_CHARS - 1] + "…"


# Choosing -------------------------------------------------------------------------------------------------------------


def _group(said: Sequence[Line], best: Kind) -> Sequence[Line]:
    """Return the last line of the best kind, with what leads to it and what belongs to it."""
    candidates = [at for at, line in enumerate(said) if line.kind == best]
    at = candidates[-1]
    if _NPM.match(said[at].written) and not _ERROR.search(said[at].says):
        at = next(at for at in candidates if _NPM.match(said[at].written))
    while at and _leads(said[at - 1], best):
        at -= 1
    end = next(
        (n for n in range(at + 1, len(said)) if said[n].kind <= Kind.EVENT or said[n].kind is Kind.FAILED), len(said)
    )
    group = said[at:end]
    causes = [number for number, line in enumerate(group) if _CAUSE.match(line.says)]
    return [group[0], *group[causes[-1] :]] if causes else group


def _leads(line: Line, best: Kind) -> bool:
    if best is Kind.COMPLAINT and line.kind is best:
        return True
    return line.kind > Kind.EVENT and line.kind is not Kind.FAILED and line.says.endswith(":")


def _end_of(lines: Sequence[Line]) -> Sequence[Line]:
    first = len(lines) - 1
    while first and len(" | ".join(line.says for line in lines[first - 1 :])) <= MAX_WORDS_CHARS:
        first -= 1
    return lines[first:]


def _other_python(version: re.Match[str]) -> Cause:
    own, relation, major, minor = filter(None, version.groups())
    words = f"the current Python version ({own}) does not satisfy Python{relation}{major}.{minor}"
    usable = int(minor) + {"<": -1, ">": 1}.get(relation, 0)
    advice = f'put "--python", "{major}.{usable}" first into its args' if "!" not in relation else ""
    return Cause(shortened([words]), advice, Kind.ERROR)


# Reading --------------------------------------------------------------------------------------------------------------


def _read(lines: Sequence[str]) -> Iterator[Line]:
    """Yield each line for what it is. What is around it may say that: a traceback, a box, a page of usage."""
    raised = usage = fields = frames = False
    box: Kind | None = None
    for number, shown in enumerate(lines):
        text = _COLOUR.sub("", shown).rstrip()
        bare = text.strip()
        if bare[:1] in ("╭", "┏", "┌", "╔"):
            box = Kind.ERROR if "error" in bare.lower() else Kind.NOISE
            yield Line(Kind.NOISE, "", bare)
        elif box is not None and bare[:1] in ("│", "┃", "║"):
            inner = " ".join(bare.strip("│┃║ ").split())
            yield Line(box if inner else Kind.NOISE, inner, inner)
        elif bare[:1] in ("╰", "┗", "└", "╚") and "─▶" not in bare:
            box = None
            yield Line(Kind.NOISE, "", bare)
        else:
            if prefix := _GROUP.match(text):
                text = text[prefix.end() :]
                bare = text.strip()
            following = lines[number + 1] if number + 1 < len(lines) else ""
            if bare.endswith("(most recent call last):"):
                raised = True
                yield Line(Kind.NOISE, "", bare)
            elif raised and (not bare or text[0].isspace()):
                yield Line(Kind.NOISE, "", bare)
            elif fields and not _CAUSE.match(bare):
                fields = bare != "}"
                yield Line(Kind.NOISE, "", bare)
            elif _FRAME_WITH_FIELDS.match(text):
                fields = True
                yield Line(Kind.NOISE, "", bare)
            elif bare.startswith("goroutine ") or (frames and bare and not _FAILED.search(bare.lower())):
                frames = True
                yield Line(Kind.NOISE, "", bare)
            elif bare[:6].lower() == "usage:" or (_HEADING.fullmatch(bare) and _ROW.match(following)):
                usage = True
                yield Line(Kind.USE, " ".join(bare.split()), bare)
            elif usage and (not bare or text[0].isspace()):
                yield Line(Kind.USE if bare else Kind.NOISE, " ".join(bare.split()), bare)
            else:
                line = _line(text, raised=raised)
                raised = usage = frames = False
                yield line


def _line(text: str, *, raised: bool) -> Line:
    """Read a line by itself. `raised`: it ends a traceback."""
    text = text[:_READ_CHARS] if "{" not in text[:_BEFORE_JSON] else text
    written = " ".join(text.split())
    if (record := _of_log(text)) is not None:
        bad, says = record
        return Line(_kind_of_error(says.lower()) if bad else Kind.EVENT, says, written)
    if _NOISE.match(text):
        return Line(Kind.NOISE, written, written)
    prefix = _NPM.match(written) or _TIME.match(written)
    says = written[prefix.end() :] if prefix else written
    if not says:
        return Line(Kind.NOISE, says, written)
    if raised:
        return Line(_kind_of_error(says.lower()), says, written)
    return Line(_kind(says, npm=bool(_NPM.match(written))), says, written)


def _kind(says: str, *, npm: bool) -> Kind:
    if _ASIDE.match(says):
        return Kind.EVENT
    lowered = says.lower()
    if _CAUSE.match(says):
        return Kind.FAILED if _only_failed(lowered) else Kind.PLAIN
    if level := _LEVEL.match(says):
        return _kind_of_error(lowered) if level[1] or level[2] else Kind.EVENT
    if npm or _ERROR.search(lowered) or _only_failed(lowered):
        return _kind_of_error(lowered)
    return Kind.COMPLAINT if _COMPLAINT.search(lowered) else Kind.PLAIN


def _kind_of_error(lowered: str) -> Kind:
    return Kind.FAILED if _only_failed(lowered) and not _WANT.search(lowered) else Kind.ERROR


def _only_failed(lowered: str) -> bool:
    alone = len(lowered) <= _FAILED_CHARS and _FAILED_ALONE.match(lowered)
    return bool(alone or _FAILED.search(lowered))


def _of_log(text: str) -> tuple[bool, str] | None:
    """Return whether a line of a structured log is about an error, and what it says; None if it is no such line.

    JSON is read by its pairs alone: a line may have been cut, or have something before it.
    """
    pairs = _JSON if "{" in text[:_BEFORE_JSON] else _LOGFMT if "=" in text else None
    if pairs is None:
        return None
    found: dict[str, str] = {}
    for name, quoted, bare in pairs.findall(text):
        if quoted or bare:
            found.setdefault(name.lower(), quoted or bare)
    level = next((found[name] for name in _LEVEL_NAMES if name in found), "")
    messages = [found[name] for name in _MESSAGES if name in found]
    errors = [found[name] for name in _ERRORS if name in found]
    if not (level and messages if pairs is _LOGFMT else messages or errors):
        return None
    said = [_first_line(part) for part in dict.fromkeys((*messages, *errors[:1]))]
    return bool(_BAD.fullmatch(level) if level else errors), ": ".join(said)


def _first_line(quoted: str) -> str:
    """Return what a JSON string says, as far as it goes on one line."""
    try:
        text = msgspec.json.decode(f'"{quoted}"', type=str)
    except msgspec.DecodeError:
        text = quoted
    told = [line for line in text.splitlines() if line.strip()]
    if told and "Traceback (most recent" in told[0]:
        told.reverse()
    return " ".join(told[0].split()) if told else ""
