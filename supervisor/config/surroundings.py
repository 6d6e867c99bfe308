"""What an entry of the configuration is read against."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from typing import Any

import msgspec

from supervisor.config.clients.client import ClientProgram
from supervisor.config.syntax.origins import ValueLayer
from supervisor.config.syntax.values import Findings, Remark


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What entries are read against. `directory` is that of the configuration file.

    `shared` are the variables of all local servers, `defaults` keys of entries that do not set them. `missing` looks
    for what an entry starts, given its keys, expanded, and remarks on what is not there. `listen` is the address of
    the daemon itself. `client`: whose file this is, if it is one's.
    """

    findings: Findings
    environ: Mapping[str, str]
    directory: PurePath
    read_file: Callable[[PurePath], str]
    shared: ValueLayer
    defaults: ValueLayer
    missing: Callable[[Mapping[str, Any]], Iterable[Remark]]
    listen: str
    client: ClientProgram | None = None
