"""What a node of a machine is started with, the settings of its fleet that follow, and the process that started it.

It is a line of JSON on the standard input of the node, as it has a key: what is in the environment of a process, or in
its arguments, is there for all that it starts, or for everybody. The end of that input is the end of whoever wrote it.
"""

from __future__ import annotations

import os
import threading
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from actors.errors import ConfigError
from actors.transport.redaction import Confidential
from supervisor.config.address import split_address
from supervisor.config.sections import FleetSettings

MAX_SETUP_BYTES: Final = 65_536
LISTENING: Final = "listening on "
"""How a daemon begins a line on its standard output for each address, once clients can connect."""
IDLE: Final = "idle"
BUSY: Final = "busy"
"""Other lines of a node: nobody has used it for `idle_exit_s`, somebody does again."""


class NodeSetup(Confidential, Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one node is told by who starts it.

    `number` is from 1, `machine` the name that all of them begin with, `listen` the address whose port is reserved for
    them. `fleet` is as it was written when all of them began. `engine` and `key` are the machine's own, empty where one
    is configured. `boot` is hexadecimal digits that all of them have in common, and no later machine has.
    `private` are places of the machine that no server in a sandbox may see. `lock_fd` holds the lock of its data
    directory, which the first node has, too.
    """

    number: Annotated[int, Meta(ge=1, le=64)]
    machine: str
    listen: str
    fleet: FleetSettings
    engine: str = ""
    key: str = ""
    boot: str = ""
    private: tuple[str, ...] = ()
    lock_fd: Annotated[int, Meta(ge=3)]

    @property
    def name(self) -> str:
        """Return the name of the node."""
        return f"{self.machine}-{self.number}"

    @property
    def lock_of_data(self) -> int | None:
        """Return what holds the lock of its data directory, if that is the one of the machine."""
        return self.lock_fd if self.number == 1 else None

    def settings_of(self, written: FleetSettings) -> FleetSettings:
        """Return the settings of this node that follow from written ones, those of now or of a newer file."""
        return replace(
            written,
            engine=written.engine or self.engine,
            node=self.name,
            listen=_nth_address(written.listen, self.number),
            keys=written.keys or ((self.key,) if self.key else ()),
        )


def _nth_address(listen: str, number: int) -> str:
    """Return the address of a node, which has a port of its own; as it is, if it is none: a fleet of one has no use
    for it.
    """
    try:
        _, port = split_address(listen)
    except ValueError:
        return listen
    return f"{listen.rpartition(':')[0]}:{port + number - 1 if port else 0}"


def encode_setup(setup: NodeSetup) -> bytes:
    """Return the line that `decode_setup` takes."""
    return msgspec.json.encode(setup) + b"\n"


def decode_setup(line: bytes) -> NodeSetup:
    """Return what a line says. Raises `ConfigError` for what nobody of ours has written, and shows nothing of it."""
    try:
        if len(line) > MAX_SETUP_BYTES:
            raise ValueError
        return msgspec.json.decode(line, type=NodeSetup)
    except (ValueError, msgspec.MsgspecError):
        hint = 'it is for "mcpvisor run" alone: leave the option --as-node out'
        raise ConfigError("what this node is started with cannot be read from its standard input", hint=hint) from None


_READ_BYTES = 65_536
PARENT_GONE = 75
"""sysexits.h EX_TEMPFAIL: this was no end in order."""


def take_setup(fd: int = 0) -> NodeSetup:
    """Return what this node is started with; from now on it ends at once when whoever started it does.

    Then nobody is there who would start it again, and whoever starts all of them anew finds none of these. Servers end
    with it, as their shims see its end. It is waited for by a thread of its own: a loop that is stuck would not see it.
    Raises `ConfigError` for what is no setup.
    """
    line = b""
    while not line.endswith(b"\n") and len(line) <= MAX_SETUP_BYTES and (more := os.read(fd, _READ_BYTES)):
        line += more
    setup = decode_setup(line)
    try:
        os.set_inheritable(setup.lock_fd, False)
    except OSError:
        raise ConfigError("the lock of the data directory was not passed on to this node") from None
    threading.Thread(target=_end_with, args=(fd,), name="lifeline", daemon=True).start()
    return setup


def _end_with(fd: int) -> None:
    while os.read(fd, _READ_BYTES):
        pass
    os._exit(PARENT_GONE)
