"""What an entry says of the values that teams and users give for it: the key `values`, and where they stand. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from actors.transport.mask import is_secret
from supervisor.config.syntax.keys import is_comment, nearest
from supervisor.config.syntax.tiers import TieredText
from supervisor.config.syntax.values import Problem, Remark, read_members
from supervisor.identity.given import Value

VALUES: Final = "values"
MAX_VALUE_CHARS: Final = 65_536
MAX_ARGUMENTS: Final = 256
"""Of one value that stands for several arguments."""
MAX_NAMES: Final = 100
"""Values of one entry."""
_BEHIND_HOST: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]+[/?#]")


class ValueRule(Struct, frozen=True, kw_only=True):
    """What holds for one value of a server, whoever gives it."""

    description: str = ""
    """What it is, for those who are to give it."""
    secret: bool | None = None
    """Whether it is shown to nobody. null: if its name says so, as that of a token or a password."""
    hidden: bool = False
    """Users neither see nor give it, whatever place it stands in; their team does."""
    several: bool = False
    """It stands for any number of arguments. Its place must be an item of `args` by itself."""
    options: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    """What may be given; empty: anything."""

    def is_secret(self, name: str) -> bool:
        return is_secret(name, "value") if self.secret is None else self.secret

    def fault(self, value: Value) -> str:
        """Return why a value cannot be given, in words that go on after its name; empty if it can."""
        texts = (value,) if isinstance(value, str) else value
        if isinstance(value, str) is self.several:
            return "is a list of arguments" if self.several else "is one text"
        if len(texts) > MAX_ARGUMENTS:
            return f"has at most {MAX_ARGUMENTS} arguments"
        if sum(map(len, texts)) > MAX_VALUE_CHARS:
            return f"has at most {MAX_VALUE_CHARS} characters"
        if any("\0" in text or "\n" in text or "\r" in text for text in texts):
            return "is of one line"
        if self.options and not set(texts) <= set(self.options):
            return f"is one of {', '.join(self.options)}"
        return ""


def read_values(written: Any, problem: Problem) -> dict[str, Any]:
    """Return the members of each value of the key `values`; `problem` takes keys from the entry inwards."""
    named = {name: members for name, members in written.items() if not is_comment(name)}
    if len(named) > MAX_NAMES:
        problem((VALUES,), f"has more than {MAX_NAMES} values", "")
    return {
        name: read_members(ValueRule, members, (VALUES, name), problem, "identity") for name, members in named.items()
    }


def place_faults(texts: Iterable[TieredText], several: Mapping[str, bool]) -> Iterator[Remark]:
    """Yield where values stand that cannot stand there; `several` says which stand for any number of arguments."""
    for text in texts:
        first = text.parts[0]
        if text.place[0] == "url" and not (isinstance(first, str) and _BEHIND_HOST.match(first)):
            yield text.place, "a value of a team or a user can only stand behind the host", "write the host itself"
        for reference in text.references:
            if several.get(reference.name) and not text.is_argument:
                yield text.place, f'the value {reference.name} is "several": it needs an item of "args" by itself', ""


def value_remarks(names: Iterable[str], texts: Iterable[TieredText]) -> Iterator[Remark]:
    """Yield which names of `values` stand nowhere."""
    used = {reference.name for text in texts for reference in text.references}
    for name in names:
        if name not in used:
            likely = nearest(name, used)
            yield (
                (VALUES, name),
                f"no ${{user:{name}}} or ${{team:{name}}} is in the entry",
                (f'did you mean "{likely}"?' if likely else "write it where the value belongs"),
            )
