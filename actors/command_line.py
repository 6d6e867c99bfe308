"""Commands of ours as they are told to people. Pure."""

from __future__ import annotations

import shlex


def command(*words: str) -> str:
    """Return `mcpvisor WORDS` to be typed into a shell as it stands: a name may have blanks."""
    return shlex.join(("mcpvisor", *words))
