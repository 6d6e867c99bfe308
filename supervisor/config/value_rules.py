"""What an entry says of the values that teams and users give for it: the key `values`, and where they stand. Pure.

No value may choose which program is started or which host is asked. So none can stand where a program that starts
others is told what to start, in a variable that says what code is loaded, or before the end of a host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from actors.transport.redaction import is_secret, looks_secret
from actors.transport.stdio.installer import LAUNCHERS
from supervisor.config.expansion import TieredText
from supervisor.config.keys import hint_of, is_comment
from supervisor.config.values import Problem, Remark, read_members
from supervisor.identity.people import Value

VALUES: Final = "values"
MAX_VALUE_CHARS: Final = 65_536
MAX_ARGUMENTS: Final = 256
"""Of one value that stands for several arguments."""
MAX_NAMES: Final = 100
"""Values of one entry."""
_BEHIND_HOST: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]+[/?#]")
_NO_TEXT: Final = re.compile(r"[\x00\n\r\ud800-\udfff]")
_ENDING: Final = re.compile(r"[0-9.]*(\.exe|\.cmd|\.bat)?$")
_STARTERS: Final = frozenset(
    {
        *LAUNCHERS,
        *("sh", "bash", "zsh", "dash", "ksh", "fish", "cmd", "powershell", "pwsh"),
        *("env", "exec", "command", "nice", "nohup", "time", "timeout", "xargs", "setsid", "sudo", "doas", "ssh"),
        *("python", "pypy", "py", "node", "tsx", "ts-node", "ruby", "perl", "php", "lua", "java", "osascript"),
    }
)
"""Programs that run what their arguments name."""
_FLAGS: Final = frozenset({"--", "-y", "--yes", "-q", "--quiet", "-i", "-t", "-it", "--rm", "--init", "-u", "-I", "-B"})
"""Options of these that take no argument themselves, and `--`."""
_NAMING: Final = frozenset({"-m", "-c", "-e", "-jar"})
"""Options of shells and interpreters whose argument is what they run."""
_LOADING: Final = re.compile(
    r"PATH|PATHEXT|HOME|USERPROFILE|APPDATA|XDG_CONFIG_.*|SHELL|IFS|ENV|BASH_ENV|BROWSER|EDITOR|VISUAL|PAGER|CLASSPATH|GCONV_PATH|(LD|DYLD|UV|PIP|DENO)_.*"
    r"|NODE_(OPTIONS|PATH)|PYTHON.*|PERL.*|RUBY(LIB|OPT)|.*JAVA.*OPTIONS|NPM_CONFIG_.*|YARN_.*|DOCKER_HOST"
    r"|GIT_(SSH.*|EXEC_PATH|CONFIG.*|EDITOR|PAGER|ASKPASS|PROXY_COMMAND|TEMPLATE_DIR)",
    re.IGNORECASE,
)
"""Variables that say which programs are run, which code is loaded, or where it is fetched."""


class ValueRule(Struct, frozen=True, kw_only=True):
    """What holds for one value of a server, whoever gives it."""

    description: str = ""
    """What it is, for those who are to give it."""
    secret: bool | None = None
    """Whether it is shown to nobody. null: if it is hidden, or its name, its place or its look says so, as those of a
    password do."""
    hidden: bool = False
    """Users neither see nor give it, whatever place it stands in; their team does."""
    several: bool = False
    """It stands for any number of arguments. Its place must be an item of `args` by itself."""
    options: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    """What may be given; empty: anything."""

    def is_secret(self, name: str, value: Value = ()) -> bool:
        """Say whether a value of that name is one; more can be said where it is known."""
        if self.secret is not None:
            return self.secret
        texts = (value,) if isinstance(value, str) else value
        return self.hidden or is_secret(name, "value") or any(map(looks_secret, texts))

    def fault(self, value: Value) -> str:
        """Return why a value cannot be given, in words that go on after its name; empty if it can."""
        texts = (value,) if isinstance(value, str) else value
        if isinstance(value, str) is self.several:
            return "is a list of arguments" if self.several else "is one text"
        if value == "":
            return "is not empty"
        if len(texts) > MAX_ARGUMENTS:
            return f"has at most {MAX_ARGUMENTS} arguments"
        if sum(map(len, texts)) > MAX_VALUE_CHARS:
            return f"has at most {MAX_VALUE_CHARS} characters"
        if any(map(_NO_TEXT.search, texts)):
            return "is of one line, without NUL characters or halves of surrogate pairs"
        if self.options and not set(texts) <= set(self.options):
            return f"is one of {', '.join(self.options)}"
        return ""


def read_values(written: Any, problem: Problem) -> dict[str, Any]:
    """Return the members of each value of the key `values`; `problem` takes keys from the entry inwards."""
    named = {name: members for name, members in written.items() if not is_comment(name)}
    if len(named) > MAX_NAMES:
        problem((VALUES,), f"has more than {MAX_NAMES} values", "")
    return {name: read_members(ValueRule, members, (VALUES, name), problem) for name, members in named.items()}


def place_faults(
    texts: Sequence[TieredText], several: Mapping[str, bool], command: str = "", args: Sequence[str] = ()
) -> Iterator[Remark]:
    """Yield where values stand that cannot stand there; `several` says which stand for any number of arguments."""
    names = {reference.name for text in texts for reference in text.references}
    if len(names) > MAX_NAMES:
        yield (), f"takes more than {MAX_NAMES} values of teams and users", ""
    fixed_from = _fixed_from(command, args, {text.place for text in texts})
    for text in texts:
        yield from _wrong_place(text, fixed_from)
        for reference in text.references:
            if several.get(reference.name) and not text.is_argument:
                yield text.place, f'the value {reference.name} is "several": it needs an item of "args" by itself', ""


def _wrong_place(text: TieredText, fixed_from: int) -> Iterator[Remark]:
    first = text.parts[0]
    match text.place:
        case ("url",) if not (isinstance(first, str) and _BEHIND_HOST.match(first)):
            yield text.place, "a value of a team or a user can only stand behind the host", "write the host itself"
        case ("args", int(at)) if at < fixed_from:
            hint = "write what it runs itself, or give the value in env"
            yield text.place, "a value of a team or a user cannot stand before the name of what is run", hint
        case ("env", str(name)) if _LOADING.fullmatch(name):
            yield text.place, "a value of a team or a user cannot say which code is loaded", "write it itself"
        case ("headers", str(name)) if name.lower() == "host":
            yield text.place, "a value of a team or a user cannot be the host", "write it itself"


def _fixed_from(command: str, args: Sequence[str], places: Iterable[object]) -> int:
    """Return at which argument it is said what is run; behind all if it is not. 0: the command is what is run."""
    program = _ENDING.sub("", PurePath(command.replace("\\", "/")).name.lower())
    if program not in _STARTERS:
        return 0
    tiered, words = set(places), LAUNCHERS.get(program, frozenset())
    before = ""
    for at, text in enumerate(args):
        written = ("args", at) not in tiered and text not in words
        named = before in _FLAGS or (program not in LAUNCHERS and before in _NAMING)
        if written and text and not text.startswith("-") and (named or not before.startswith("-")):
            return at
        before = text
    return len(args)


def value_remarks(names: Iterable[str], texts: Iterable[TieredText]) -> Iterator[Remark]:
    """Yield which names of `values` stand nowhere."""
    used = {reference.name for text in texts for reference in text.references}
    for name in names:
        if name not in used:
            hint = hint_of(name, used, "write it where the value belongs")
            yield (VALUES, name), f"no ${{user:{name}}} or ${{team:{name}}} is in the entry", hint
