"""The sandbox of one local server: the object `sandbox` of an entry, or a word for one without more. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from actors.transport.stdio.sandbox import Sandbox, objection_to_place
from supervisor.config.syntax.jsonc import KeyPath
from supervisor.config.syntax.units import SandboxKind
from supervisor.config.syntax.values import Problem, read_members

SANDBOX: Final = "sandbox"
MAX_PLACES: Final = 64
_PLACES: Final = ("read", "write")

Places = Annotated[tuple[str, ...], Meta(max_length=MAX_PLACES)]


class SandboxConfig(Struct, frozen=True, kw_only=True):
    """What a local server may do, expanded and validated."""

    kind: SandboxKind = "none"
    """`bubblewrap`: the server runs in a sandbox that `bwrap` makes, or not at all. `none`: it may do all that
    the daemon may."""
    read: Places = ()
    """Files and directories that the server may read beside system files; a relative one starts at the directory of the
    configuration file."""
    write: Places = ()
    """Directories, or files, that it may read and write beside its working directory."""
    network: bool = False
    """Let it use the network, and all that listens on this machine."""

    @property
    def sandbox(self) -> Sandbox | None:
        if self.kind == "none":
            return None
        return Sandbox(read=self.read, write=self.write, network=self.network)


def read_sandbox(
    written: Mapping[str, Any], place_of: Callable[[KeyPath, str], str], home: str, problem: Problem
) -> dict[str, Any]:
    """Return the members of a sandbox. `place_of` gives what a path means: variables, `~`, and where it starts."""
    own = read_members(SandboxConfig, written, (SANDBOX,), problem)
    if "kind" not in written:
        problem((SANDBOX,), "says nothing without a kind", 'write "kind": "bubblewrap"')
    for key in _PLACES:
        own[key] = [posixpath.normpath(place_of((SANDBOX, key, at), text)) for at, text in enumerate(own.get(key, ()))]
        for at, place in enumerate(own[key]):
            if objection := _objection(place, posixpath.normpath(home)):
                problem((SANDBOX, key, at), *objection)
    return own


def check_sandbox(own: Mapping[str, Any], home: str, problem: Problem, *, process: bool) -> None:
    """Note why a server cannot have the sandbox of its entry: it is no process, or it may not write where it works."""
    cwd = own.get("cwd") or ""
    if own[SANDBOX].get("kind", "none") == "none":
        return
    if not process:
        problem((SANDBOX,), "only a server that is a process has a sandbox", "remove it")
    elif cwd and (objection := objection_to_place(posixpath.normpath(cwd), posixpath.normpath(home))):
        problem(("cwd",), f"a sandbox cannot have it: {objection}", "")


def _objection(place: str, home: str) -> tuple[str, str] | None:
    """Say what is wrong with a path, and what to do."""
    if not place.startswith("/"):
        return "is no absolute path", "write one that begins with / or ~/"
    if "\0" in place:
        return "holds a NUL character", "remove it"
    objection = objection_to_place(place, home)
    return (f"a sandbox cannot have it: {objection}", "") if objection else None
