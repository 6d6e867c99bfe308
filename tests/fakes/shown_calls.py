"""What the question whether a tool may run says, read back from its words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

_CALL = re.compile(r"Run (\S+) with (.*)\?", re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^"]+')
_BLANKS = re.compile(r" \(([\d,]+) blanks\) ")
_SPELLED = " (in ASCII "


def decoded_call(text: str, decode: Callable[[str], Any] = json.loads) -> tuple[str, Any]:
    """Return the path and the arguments of a call that is shown whole."""
    called = _CALL.fullmatch(text)
    assert called is not None, text
    parts: list[str] = []
    blanks, spelled = 0, False
    for token in _TOKEN.findall(called[2]):
        if spelled:
            spelled = not token.startswith(")")
            parts.append("" if spelled else token[1:])
        elif counted := _BLANKS.fullmatch(token):
            blanks = int(counted[1].replace(",", ""))
        elif token == _SPELLED:
            spelled = True
        elif blanks:
            parts[-1] = parts[-1][:-1] + " " * blanks + token[1:]
            blanks = 0
        else:
            parts.append(token)
    return called[1], decode("".join(parts))
