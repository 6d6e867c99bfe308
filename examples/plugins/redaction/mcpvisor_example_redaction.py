"""Takes e-mail addresses and numbers of payment cards out of what tools answer.

    "plugins": {"redaction": {"patterns": ["email", "card"], "except_tools": ["crm:*"]}}

Every text of the result is looked at: blocks of text, embedded texts, structured content. A number is one of a card if
its check digit is right (ISO/IEC 7812-1). It costs time in proportion to the text, whatever is in it.
"""

from __future__ import annotations

import re
from fnmatch import translate
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from supervisor.plugins.contract import Plugin, PluginOptions, ToolCall, decode_result

_NOT_LOCAL = re.compile(r"[^A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]")
_DOMAIN = re.compile(r"[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}")
_DIGITS = re.compile(r"[0-9](?:[ -]?[0-9])+")
_GROUP = re.compile(r"([0-9]+)([ -]?)")
MAX_LOCAL = 64
LEAST_DIGITS, MOST_DIGITS = 13, 19
NOT_TEXT = frozenset({"data", "blob"})
"""Members that hold bytes in base64."""


class RedactionOptions(PluginOptions, frozen=True, kw_only=True):
    """What is taken out, what stands there instead, and which tools are left alone."""

    patterns: tuple[Literal["email", "card"], ...] = ("email", "card")
    replacement: Annotated[str, Meta(max_length=100)] = "[redacted]"
    except_tools: Annotated[tuple[str, ...], Meta(max_length=1000)] = ()


class Redaction(Plugin[RedactionOptions]):
    """Replaces what it finds. It guards: a result that it cannot look at is held back."""

    options_type = RedactionOptions
    guards = True

    def __init__(self, options: RedactionOptions) -> None:
        super().__init__(options)
        self._left_alone = re.compile("|".join(map(translate, options.except_tools)) or r"(?!)")

    def after_call(self, call: ToolCall, result: bytes) -> bytes | None:
        """Look at every text of the result; in a thread, as that may be many megabytes."""
        if self._left_alone.match(call.path):
            return None
        value = decode_result(result)
        told = {member: value[member] for member in ("content", "structuredContent") if member in value}
        redacted, changed = self._redact(told)
        return msgspec.json.encode({**value, **redacted}) if changed else None

    def _redact(self, value: Any) -> tuple[Any, bool]:
        """Return a value with its texts redacted, names of members included, and whether any was.

        A loop: it may be nested deeply.
        """
        whole, changed = [value], False
        waiting: list[tuple[Any, Any]] = [(whole, 0)]
        while waiting:
            holder, place = waiting.pop()
            each = holder[place]
            if isinstance(each, str):
                holder[place] = self.text(each)
                changed |= holder[place] != each
            elif isinstance(each, list):
                waiting += [(each, at) for at in range(len(each))]
            elif isinstance(each, dict):
                renamed = {self.text(key): child for key, child in each.items()}
                changed |= renamed.keys() != each.keys()
                holder[place] = renamed
                waiting += [(renamed, key) for key in renamed if key not in NOT_TEXT]
        return whole[0], changed

    def text(self, text: str) -> str:
        """Return a text without what is to be taken out."""
        if "email" in self.options.patterns and "@" in text:
            text = self._without_addresses(text)
        if "card" in self.options.patterns:
            text = _DIGITS.sub(lambda number: self._number(number[0]), text)
        return text

    def _without_addresses(self, text: str) -> str:
        """Look around each `@`: at most 64 characters before it, and a name of bounded length behind it."""
        parts: list[str] = []
        end = 0
        at = text.find("@")
        while at >= 0:
            domain = _DOMAIN.match(text, at + 1)
            start = at - len(_NOT_LOCAL.split(text[max(end, at - MAX_LOCAL) : at])[-1])
            if domain is not None and start < at:
                parts += [text[end:start], self.options.replacement]
                end = domain.end()
            at = text.find("@", max(at + 1, end))
        return "".join([*parts, text[end:]])

    def _number(self, written: str) -> str:
        """Return digits without the numbers of cards among them: one may stand right beside another number."""
        groups, parts, at = _GROUP.findall(written), list[str](), 0
        while at < len(groups):
            taken = _card_length([group for group, _ in groups[at : at + MOST_DIGITS]])
            if taken:
                parts.append(self.options.replacement + groups[at + taken - 1][1])
            else:
                parts.append("".join(groups[at]))
            at += taken or 1
        return "".join(parts)


def _card_length(groups: list[str]) -> int:
    """Return how many of these groups of digits are the number of a card, the longest from the first on; 0 for none."""
    digits: list[int] = []
    longest = 0
    for count, group in enumerate(groups, 1):
        digits += map(int, group[: MOST_DIGITS + 1])
        if len(digits) > MOST_DIGITS:
            break
        if len(digits) >= LEAST_DIGITS and passes_check(digits):
            longest = count
    return longest


def passes_check(digits: list[int]) -> bool:
    """Say whether the last digit is the check digit of the others, by the formula of Luhn."""
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
