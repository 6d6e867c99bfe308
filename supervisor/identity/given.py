"""Values that teams and users give for servers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from actors.transport.redaction import Confidential

Tier = Literal["team", "user"]
"""Who gives a value. That of a user goes over that of the team."""
Value = str | tuple[str, ...]
"""A text; or several, in the place of one argument."""


class Given(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """A value as a team or a user gives it. `locked`: a user may not give another one."""

    value: Value
    locked: bool = False


GivenByServer = Mapping[str, Mapping[str, Given]]
"""What one team or user gives: by server, and by the name of the value."""
