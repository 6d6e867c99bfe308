"""The checks of `doctor`: each looks at facts and says what was seen, whether it is well, and what to do. Pure.

`CHECKS` is all of them, in the order in which one would mend things. One that has nothing to say yields nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from shlex import quote
from typing import Literal

import msgspec

from actors.command_line import command
from actors.kit.paths import absolute
from actors.transport.stdio.causes import cause_of
from actors.transport.stdio.remedies import how_to_provide, provider_of
from actors.transport.stdio.resources.allotment import size
from supervisor.commands.diagnosis.facts import Facts, ProgramFacts, RemoteFacts
from supervisor.config.values import MIB
from supervisor.store.database import SCHEMA_VERSION

Status = Literal["ok", "warning", "wrong"]

LEAST_FREE_BYTES = 10 * MIB
LITTLE_FREE_BYTES = 200 * MIB
"""A first `npx` or `uvx` of a server takes that much of a disk."""
CLOCK_SLACK_S = 600.0
_MOST_NAMED = 5
_VERSION = re.compile(r"\d+(?:\.\d+)+")


class Verdict(msgspec.Struct, frozen=True):
    """What a check says. `todo` is empty where all is well."""

    status: Status
    seen: str
    todo: str = ""


def _installation(facts: Facts) -> Iterator[Verdict]:
    for clash in facts.clashes:
        seen, _, todo = clash.rpartition(": ")
        yield Verdict("warning", seen, todo)
    yield Verdict("ok", f"mcpvisor {facts.version}, Python {facts.python}")


def _configuration(facts: Facts) -> Iterator[Verdict]:
    if facts.running and facts.running != absolute(facts.file):
        todo = f"to look at that: {command('doctor', '--config', facts.running)}"
        yield Verdict("ok", f"the daemon that runs has another file: {facts.running}", todo)
    if facts.unusable:
        yield Verdict("wrong", facts.unusable, "no daemon starts with it before this is mended")
        return
    for problem in facts.problems:
        yield Verdict("wrong", problem, "the daemon goes on without this server until it is mended")
    if facts.notes:
        yield Verdict("warning", f"{_count(facts.notes, 'note')} on the configuration", command("check", facts.file))
    if facts.missing:
        todo = "mcpvisor tools shows which there are; a name that fits none keeps nobody from anything"
        yield Verdict("warning", f"profiles or people name tools that there are not: {_some(facts.missing)}", todo)
    if not facts.problems:
        whose = ", of the daemon that runs" if facts.running == absolute(facts.file) else ""
        yield Verdict("ok", f"{facts.file}{whose}: {_count(facts.servers, 'server')}")


def _plugins(facts: Facts) -> Iterator[Verdict]:
    for name in facts.loaded:
        yield Verdict("ok", f"{name}: {facts.plugins.get(name, 'not installed any more')}")
    if others := [name for name in facts.plugins if name not in facts.loaded]:
        yield Verdict("ok", f"installed, but the configuration does not name them: {_some(others)}")


def _data_directory(facts: Facts) -> Iterator[Verdict]:
    data = facts.data
    for seen, todo in data.troubles:
        yield Verdict("wrong", seen, todo)
    if data.troubles:
        return
    if not data.writable:
        yield Verdict("wrong", f"{data.path}: this user cannot write there", "make it writable, or set data_dir")
    elif data.mode is None:
        yield Verdict("ok", f"{data.path} is made at the first start")
    elif data.mode & 0o077:
        yield Verdict(
            "warning",
            f"{data.path}: others can look into it (mode {data.mode:04o})",
            f"chmod 700 {quote(data.path)}",
        )
    else:
        yield Verdict("ok", f"{data.path}, mode {data.mode:04o}")


def _disk(facts: Facts) -> Iterator[Verdict]:
    free = facts.data.free_bytes
    if free is None:
        return
    seen = f"{free // MIB} MiB are free for {facts.data.path}"
    if free < LEAST_FREE_BYTES:
        yield Verdict("wrong", seen, "free some space: what is known of servers cannot be saved")
    elif free < LITTLE_FREE_BYTES:
        yield Verdict("warning", seen, "free some space: servers that are downloaded at their start need it")
    else:
        yield Verdict("ok", seen)


def _database(facts: Facts) -> Iterator[Verdict]:
    schema = facts.data.schema
    if facts.data.damage:
        todo = "it is moved aside at the next start, and servers are discovered again; a backup brings back logins"
        yield Verdict("warning", f"the database is damaged: {facts.data.damage}", todo)
    elif 0 < schema < SCHEMA_VERSION:
        yield Verdict("ok", f"schema {schema}: the next start copies it and brings it to {SCHEMA_VERSION}")
    elif schema == SCHEMA_VERSION:
        yield Verdict("ok", f"schema {schema}")
    if facts.data.copies:
        todo = "logins, tokens, values and approvals of before are in them; delete them when you have made these again"
        yield Verdict("warning", f"earlier databases were damaged: {_some(facts.data.copies)}", todo)


def _programs(facts: Facts) -> Iterator[Verdict]:
    if facts.daemons_path:
        yield Verdict("ok", f"looked up on the PATH of the running daemon, which is not this one: {facts.daemons_path}")
    for program in facts.programs:
        yield from _program(program)


def _program(program: ProgramFacts) -> Iterator[Verdict]:
    who = f", for {_some(program.servers)}" if program.servers else ""
    provider = provider_of(program.command)
    if program.trouble:
        if program.servers:
            todo = how_to_provide(program.command, program.hint)
            yield Verdict("wrong", f"{program.command}: {program.trouble}{who}", todo)
        else:
            yield Verdict("ok", f"{program.command} is not here, and no server needs it")
        return
    if provider is None:
        yield Verdict("ok", f"{program.path}{who}")
        return
    version = _VERSION.search(program.said)
    numbers = tuple(int(part) for part in version[0].split(".")) if version else ()
    advice = cause_of(program.said).advice
    seen = f"{provider.name} {version[0]}, {program.path}{who}" if version else f"{program.path}{who}"
    if advice:
        yield Verdict("wrong" if program.servers else "warning", f"{program.path} does not work{who}", advice)
    elif numbers and numbers < provider.oldest:
        yield Verdict("wrong" if program.servers else "warning", f"{seen}: too old", provider.install)
    elif not version:
        yield Verdict("warning", f"{seen} does not say its version", f"try {program.command} --version in a terminal")
    else:
        yield Verdict("ok", seen)


def _sandbox(facts: Facts) -> Iterator[Verdict]:
    sandbox = facts.sandbox
    if not sandbox.servers:
        return
    who = f", for {_some(sandbox.servers)}"
    if sandbox.trouble:
        yield Verdict("wrong", f"no sandbox can be made: {sandbox.trouble}{who}", sandbox.hint)
    else:
        yield Verdict("ok", f"{sandbox.path} makes one{who}")


def _port(facts: Facts) -> Iterator[Verdict]:
    port = facts.port
    if port.absent:
        yield Verdict(
            "warning", f"no daemon answers at {port.absent}", "start it, or give another --url or MCPVISOR_URL"
        )
    for seen, todo in port.troubles:
        yield Verdict("wrong", seen, todo)
    if port.daemon and port.daemon != facts.version:
        todo = "restart it, so that it is of the version that is installed"
        yield Verdict("warning", f"the daemon at {port.listen} is of version {port.daemon}", todo)
    elif port.daemon:
        yield Verdict("ok", f"our daemon listens on {port.listen}")
    elif port.listen and not port.troubles:
        yield Verdict("ok", f"{port.listen} is free")


def _descriptors(facts: Facts) -> Iterator[Verdict]:
    seen = f"{facts.descriptors} files may be open"
    if facts.descriptors < facts.enough:
        todo = "raise the limit (ulimit -n, LimitNOFILE= of a service): under it servers take turns"
        yield Verdict("warning", f"{seen}; all servers at once need {facts.enough}", todo)
    else:
        yield Verdict("ok", seen)


def _memory(facts: Facts) -> Iterator[Verdict]:
    memory = facts.memory
    if memory.available is None or memory.total is None:
        return
    seen = f"{size(memory.available)} of {size(memory.total)} are free, {size(memory.reserve)} stay free of servers"
    if memory.available < memory.reserve:
        yield Verdict("warning", seen, "end other programs, or set memory.reserve_mib: no server starts like this")
    else:
        yield Verdict("ok", seen)


def _limits(facts: Facts) -> Iterator[Verdict]:
    """Of a limit that the kernel does not keep it is said what becomes of it."""
    ways: dict[tuple[str, str], list[str]] = {}
    for server, limits in facts.limits.items():
        for name, way in limits.items():
            ways.setdefault((name, way), []).append(server)
    todo = "have systemd delegate a control group: Delegate=yes in its unit"
    for (name, way), servers in sorted(ways.items()):
        if way == "kernel":
            yield Verdict("ok", f"{name} of {_some(servers)}: the kernel lets nobody over it")
        elif way == "watched":
            yield Verdict("ok", f"{name} of {_some(servers)}: looked at every few seconds; who is over it is replaced")
        else:
            yield Verdict("warning", f"{name} of {_some(servers)} is without effect here", todo)


def _clock(facts: Facts) -> Iterator[Verdict]:
    behind = facts.newest - facts.now
    if behind > CLOCK_SLACK_S:
        seen = f"the clock stands {behind / 3600:.1f} h before the last change of {facts.newest_file}"
        yield Verdict("warning", seen, "set the clock: certificates, logins and sessions end by it")
    else:
        yield Verdict("ok", "not before the last change of any file of ours")


def _proxies(facts: Facts) -> Iterator[Verdict]:
    if not facts.proxies:
        return
    through: dict[str, list[str]] = {}
    for remote in facts.remotes:
        through.setdefault(remote.proxy, []).append(remote.server)
    directly = through.pop("", [])
    said = [f"{_some(servers)} through {variable}" for variable, servers in through.items()]
    said += [f"{_some(directly)} directly"] if directly else []
    named = ", ".join(f"{name}={value}" for name, value in facts.proxies.items())
    seen = f"{named}: {'; '.join(said) or 'no remote server'}; local servers get the variables"
    if facts.loopback_excepted:
        yield Verdict("ok", seen)
    else:
        todo = "set NO_PROXY=127.0.0.1,localhost for clients: some send what is for the daemon to the proxy"
        yield Verdict("warning", seen, todo)


def _remote_servers(facts: Facts) -> Iterator[Verdict]:
    for remote in facts.remotes:
        yield from _remote(remote)


def _remote(remote: RemoteFacts) -> Iterator[Verdict]:
    if remote.trouble:
        todo = "correct the address, or check the network and its name servers"
        yield Verdict("wrong", f"{remote.server}: {remote.host} cannot be looked up: {remote.trouble}", todo)
    elif remote.trouble is not None:
        yield Verdict("ok", f"{remote.server}: {remote.host} has an address")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


CHECKS: tuple[tuple[str, Callable[[Facts], Iterator[Verdict]]], ...] = (
    ("installation", _installation),
    ("configuration", _configuration),
    ("plugins", _plugins),
    ("data directory", _data_directory),
    ("database", _database),
    ("disk", _disk),
    ("programs", _programs),
    ("sandbox", _sandbox),
    ("address", _port),
    ("open files", _descriptors),
    ("memory", _memory),
    ("limits of servers", _limits),
    ("clock", _clock),
    ("proxies", _proxies),
    ("remote servers", _remote_servers),
)


def diagnose(facts: Facts) -> list[tuple[str, Verdict]]:
    """Return what every check says, with its name."""
    return [(name, verdict) for name, check in CHECKS for verdict in check(facts)]
