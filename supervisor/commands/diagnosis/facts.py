"""What is seen of this machine, as plain values; whoever gathers them decides nothing. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

Trouble = tuple[str, str]
"""What is wrong, and what to do."""


class ProgramFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A program that servers are started with. `said`: what it answered when it was asked for its version.

    `trouble`: why it cannot be started, `hint`: what installs it. `servers`: who needs it; none, and it is only looked
    for.
    """

    command: str
    path: str = ""
    trouble: str = ""
    hint: str = ""
    said: str = ""
    servers: tuple[str, ...] = ()


class SandboxFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The sandbox that some servers ask for. `trouble`: why bwrap makes none here, `hint`: what to do."""

    servers: tuple[str, ...] = ()
    path: str = ""
    trouble: str = ""
    hint: str = ""


class RemoteFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A remote server: the host of its address, the variable that names the proxy before it, if there is one.

    `trouble`: why its name cannot be looked up; None where nobody looked.
    """

    server: str
    host: str
    proxy: str = ""
    trouble: str | None = None


class DataFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The data directory. `mode`: its permissions, None if it is not there; `schema`: of the database, 0 without one.

    `free_bytes` are those of its disk, or of that on which it would be made. `copies`: names of earlier databases that
    were damaged.
    """

    path: str = ""
    mode: int | None = None
    writable: bool = True
    free_bytes: int | None = None
    troubles: tuple[Trouble, ...] = ()
    schema: int = 0
    damage: str = ""
    copies: tuple[str, ...] = ()


class PortFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The address to listen on. `daemon`: the version of the daemon there; `troubles`: why nobody can listen.

    `absent`: the address that was given for the daemon, where none answers.
    """

    listen: str = ""
    absent: str = ""
    daemon: str = ""
    troubles: tuple[Trouble, ...] = ()


class MemoryFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Memory there is and to be had, and what has to stay free, in bytes; None where nobody can tell."""

    total: int | None = None
    available: int | None = None
    reserve: int = 0


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. Moments are unix seconds.

    `plugins` are installed, by name with the version; `loaded` are those that the configuration names.
    `running`: the file that a daemon at the address has, empty if none answers.
    `missing`: of the tools that profiles and people name, those that the daemon with this file does not know.
    `unusable`: why there is no configuration; `problems`: why entries are left out; `notes`: how many there are.
    `descriptors`: how many there may be; `enough`: how many let all servers run at once. `newest`: the last change of
    the file that was changed last. `daemons_path`: the PATH that a running daemon gives to servers, if it is another
    one than ours; programs are looked up on it. `proxies`: by variable, without secrets; `loopback_excepted`: whether
    `NO_PROXY` names it. `limits`: how each limit of a server is kept, by server and setting.
    """

    version: str
    python: str
    clashes: tuple[str, ...] = ()
    file: str = ""
    running: str = ""
    unusable: str = ""
    plugins: Mapping[str, str] = {}
    loaded: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    notes: int = 0
    missing: tuple[str, ...] = ()
    servers: int = 0
    data: DataFacts = DataFacts()
    programs: tuple[ProgramFacts, ...] = ()
    sandbox: SandboxFacts = SandboxFacts()
    daemons_path: str = ""
    port: PortFacts = PortFacts()
    descriptors: int = 1 << 20
    enough: int = 0
    now: float = 0.0
    newest: float = 0.0
    newest_file: str = ""
    proxies: Mapping[str, str] = {}
    loopback_excepted: bool = True
    remotes: tuple[RemoteFacts, ...] = ()
    limits: Mapping[str, Mapping[str, str]] = {}
    memory: MemoryFacts = MemoryFacts()
