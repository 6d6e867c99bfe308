"""`MCP_TOOL_TIMEOUT`: a deadline from the environment, where the configuration sets none. Pure.

Milliseconds, as every program reads it that knows the variable; less than five seconds count as five.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from supervisor.config.syntax.values import Findings

VARIABLE = "MCP_TOOL_TIMEOUT"
LEAST_S = 5.0
_MILLISECONDS = re.compile(r"[0-9]{1,10}(?:\.[0-9]*)?")


def tool_timeout_s(environ: Mapping[str, str], findings: Findings) -> float | None:
    """Return the deadline in seconds, None if the variable is not set; one that says nothing is noted."""
    text = environ.get(VARIABLE, "").strip()
    if not text:
        return None
    seconds = float(text) / 1000 if _MILLISECONDS.fullmatch(text) else 0.0
    if not seconds:
        findings.note((), f"{VARIABLE} of the environment is no number of milliseconds", "60000 is one minute")
        return None
    if seconds < LEAST_S:
        findings.note(
            (), f"{VARIABLE} of the environment is milliseconds; it counts as {LEAST_S:g} s", "use 5000 or more"
        )
    return max(seconds, LEAST_S)


def by_default(members: object, key: str, seconds: float | None) -> object:
    """Return the members of an object of the file, with that deadline where they do not set it themselves."""
    if seconds is None or not (members is None or isinstance(members, dict)):
        return members
    return {key: seconds, **(members or {})}
