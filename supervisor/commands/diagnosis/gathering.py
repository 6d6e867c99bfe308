"""Gathers the facts: looks at files, at the data directory with its disk and database, asks programs for their version,
the daemon for its own, and changes nothing.

Everything that may wait has a deadline: programs that answer later are taken for ones that say nothing.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sqlite3
import stat
import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from importlib.metadata import packages_distributions
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx2
import msgspec
import trio

import supervisor
from actors.errors import ConfigError, SpawnFailed
from actors.kit.paths import absolute
from actors.transport.http.client.client import proxy_for
from actors.transport.redaction import without_secrets
from actors.transport.stdio.command import ProcessLimits, build_environment, resolve_command
from actors.transport.stdio.installer import installer_of
from actors.transport.stdio.remedies import provider_of
from actors.transport.stdio.resources.allotment import Enforcement
from actors.transport.stdio.resources.groups import Groups, look_at_memory
from actors.transport.stdio.resources.room import RUNNING, SPAWN
from actors.transport.stdio.sandbox import SHELL, Sight, Trouble, arguments, bwrap_program, trouble_of
from supervisor import operations
from supervisor.commands.check import clashes
from supervisor.commands.diagnosis.facts import (
    DataFacts,
    Facts,
    MemoryFacts,
    PortFacts,
    ProgramFacts,
    RemoteFacts,
    SandboxFacts,
)
from supervisor.commands.run import check_exposure, find_config, find_published
from supervisor.config import Configuration, ServerConfig, Settings, load
from supervisor.config.address import base_url
from supervisor.config.identity import named_tools
from supervisor.config.remarks import lines
from supervisor.daemon_client.client import DaemonUnreachable, RequestRefused, connect
from supervisor.daemon_client.client import base_url as daemon_base
from supervisor.host.datadir import DATABASE, LOCK_NAME, MAX_PID_BYTES, problems_of
from supervisor.host.descriptors import LEAST_CLIENTS, OWN, attainable
from supervisor.host.places import default_data_dir
from supervisor.host.version import VERSION
from supervisor.plugins.loading import versions
from supervisor.store.database import damaged_copies


def _data_facts(settings: Settings, environ: Mapping[str, str]) -> DataFacts:
    try:
        root = Path(absolute(settings.data_dir or str(default_data_dir(environ))))
    except ConfigError as error:
        return DataFacts(troubles=((error.message, error.hint),))
    troubles = tuple((f"{problem.path}: {problem.message}", problem.hint) for problem in problems_of(root))
    facts = DataFacts(path=str(root), troubles=troubles)
    if troubles:
        return facts
    mode = _mode(root)
    there = root if mode is not None else next((above for above in root.parents if _mode(above) is not None), root)
    schema, damage = _database(root / DATABASE)
    return DataFacts(
        path=str(root),
        mode=mode,
        writable=os.access(there, os.W_OK | os.X_OK),
        free_bytes=shutil.disk_usage(there).free,
        schema=schema,
        damage=damage,
        copies=tuple(copy.name for copy in damaged_copies(root / DATABASE)),
    )


def _mode(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None


def _database(path: Path) -> tuple[int, str]:
    """Return its schema, 0 if there is none, and what is wrong with it. Writes nothing, not even a log beside it."""
    if _mode(path) is None:
        return 0, ""
    # Whoever has it open keeps a log beside it, and reads with it; without one nobody writes.
    way = "mode=ro" if _mode(path.with_name(f"{path.name}-wal")) is not None else "immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?{way}", uri=True, timeout=1.0)) as connection:
            answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            schema: int = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error as error:
        return 0, str(error)
    return schema, "" if answer == "ok" else str(answer)


def _newest_of(files: list[Path]) -> tuple[float, str]:
    """Return the last change of the file that was changed last."""
    changes = [(0.0, "")]
    for file in files:
        try:
            changes.append((file.stat().st_mtime, str(file)))
        except OSError:
            continue
    return max(changes)


_PROGRAM_TIMEOUT_S = 5.0
_DAEMON_TIMEOUT_S = 3.0
_LOOKUP_TIMEOUT_S = 5.0
_MAX_NAMED, _NAMED_AT_ONCE = 200, 10
"""So many of the tools that profiles and people name are looked for, and so many with one request."""
_SAID_CHARS = 2000
_LOOKED_FOR = ("npx", "uvx", "python3")
"""Programs that published servers are started with most."""
_PROXY_SCHEMES = ("http", "https", "all")


async def gather(config: Path | None, environ: Mapping[str, str], url: str = "", *, network: bool) -> Facts:
    """Return the facts for the configuration that `run` would read; `network`: look names of remote servers up.

    `url`: where the daemon is, if that is not the address of the configuration.
    """
    configuration, unusable = _load(config, environ)
    running = await _file_of_daemon(_daemon_at(url, configuration.settings))
    if config is None and unusable and running:  # there is no file where `run` would look, and none is needed
        configuration, unusable = _load(Path(running), environ)
    servers = [server for server in configuration.servers if not server.disabled]
    local = [server for server in servers if server.kind == "stdio"]
    remotes = [_remote(server, environ) for server in servers if server.kind != "stdio"]
    data = _data_facts(configuration.settings, environ)
    port = await _port(url, configuration.settings)
    daemons_path = _path_of_daemon(Path(data.path)) if port.daemon else ""
    around = {**environ, **({"PATH": daemons_path} if daemons_path else {})}
    named = [*dict.fromkeys(named_tools(configuration.settings))][:_MAX_NAMED]
    ours = port.daemon and running == absolute(str(configuration.path))
    newest, newest_file = _newest_of([configuration.path, Path(data.path) / DATABASE, Path(supervisor.__file__)])
    return Facts(
        version=VERSION,
        python=platform.python_version(),
        clashes=tuple(clashes(packages_distributions().get("supervisor", []))),
        file=str(configuration.path),
        running=running,
        unusable=unusable,
        plugins=versions(),
        loaded=tuple(configuration.settings.plugins),
        problems=tuple(str(problem) for problem in configuration.problems),
        notes=len(lines(configuration.notes)),
        missing=await _missing(_daemon_at(url, configuration.settings), named) if ours else (),
        servers=len(servers),
        data=data,
        programs=await _programs(local, around),
        sandbox=await _sandbox(tuple(server.path_name for server in local if server.sandbox.kind != "none")),
        daemons_path=daemons_path if daemons_path != environ.get("PATH") else "",
        port=port,
        descriptors=attainable(),
        enough=OWN + SPAWN + RUNNING * len(local) + 2 * LEAST_CLIENTS,
        now=time.time(),
        newest=newest,
        newest_file=newest_file,
        proxies=_proxies(environ),
        loopback_excepted=_is_loopback_excepted(environ),
        remotes=tuple(await _look_up(remotes)) if network else tuple(remotes),
        limits=_limits(local),
        memory=_memory(configuration.settings),
    )


def _load(config: Path | None, environ: Mapping[str, str]) -> tuple[Configuration, str]:
    """Return the configuration, an empty one with the reason if there is none."""
    path = config or Path("mcp.json")
    try:
        path = find_config(config, environ)
        return load(path, environ, published=find_published(path, environ)), ""
    except ConfigError as error:
        return Configuration(settings=Settings(), servers=(), path=path), str(error)


def _limits(servers: list[ServerConfig]) -> dict[str, dict[str, Enforcement]]:
    """Return how limits are kept by a daemon that runs where we do."""
    controllers = Groups().controllers
    limits = {each.path_name: msgspec.convert(each, ProcessLimits, from_attributes=True) for each in servers}
    kept = {name: each.allotment(name).enforcement(controllers) for name, each in limits.items()}
    return {name: each for name, each in kept.items() if each}


def _memory(settings: Settings) -> MemoryFacts:
    memory = look_at_memory()
    reserve = settings.memory.bounds.reserve_of(memory.total)
    return MemoryFacts(total=memory.total, available=memory.available, reserve=reserve)


# Files ----------------------------------------------------------------------------------------------------------------


def _path_of_daemon(root: Path) -> str:
    """Return the PATH that a daemon with this data directory was started with (proc(5)); empty if that cannot be told.

    A service often has a shorter one than the shell that this is typed into.
    """
    try:
        number = int((root / LOCK_NAME).read_bytes()[:MAX_PID_BYTES])
        variables = Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return ""
    return next((os.fsdecode(each[5:]) for each in variables if each.startswith(b"PATH=")), "")


# Programs -------------------------------------------------------------------------------------------------------------


async def _programs(servers: list[ServerConfig], environ: Mapping[str, str]) -> tuple[ProgramFacts, ...]:
    """Return the programs that servers are started with, each looked up as its server would, and those looked for."""
    needs: dict[tuple[str, str, str], list[ServerConfig]] = {}
    for server in servers:
        installer = installer_of(server.command, server.args)
        launcher = installer.launcher if installer is not None else ""
        for command in {server.command: None, **({launcher: None} if _is_other(launcher, server.command) else {})}:
            path = build_environment(server.env, environ)["PATH"]
            cwd = absolute(server.cwd or "") if "/" in command else "/"
            needs.setdefault((command, path, cwd), []).append(server)
    have = {provider_of(command) for command, *_ in needs}
    for command in (each for each in _LOOKED_FOR if provider_of(each) not in have):
        needs[command, build_environment({}, environ)["PATH"], "/"] = []
    facts: dict[tuple[str, str, str], ProgramFacts] = {}
    async with trio.open_nursery() as nursery:
        for need, users in needs.items():
            nursery.start_soon(_look_at, need, users, environ, facts)
    return tuple(facts[need] for need in needs)


def _is_other(launcher: str, command: str) -> bool:
    return bool(launcher) and Path(command).name != launcher


async def _look_at(
    need: tuple[str, str, str],
    users: list[ServerConfig],
    environ: Mapping[str, str],
    facts: dict[tuple[str, str, str], ProgramFacts],
) -> None:
    command, path, cwd = need
    names = tuple(server.path_name for server in users)
    try:
        program = resolve_command(command, path=path, cwd=cwd)
    except SpawnFailed as error:
        reason = error.message.removeprefix(f"command {command!r} ").removeprefix(f"{command}: ")
        facts[need] = ProgramFacts(command=command, trouble=reason, hint=error.hint, servers=names)
        return
    said = ""
    if (provider := provider_of(command)) is not None:
        asked = provider.asked or program
        said = await _ask(asked, provider.arguments, build_environment({"PATH": path}, environ))
    facts[need] = ProgramFacts(command=command, path=program, said=said, servers=names)


async def _ask(program: str, arguments: tuple[str, ...], environment: Mapping[str, str]) -> str:
    """Return what a program answers to a question for its version; empty if it does not in time."""
    try:
        resolved = resolve_command(program, path=environment["PATH"], cwd="/")
        with trio.move_on_after(_PROGRAM_TIMEOUT_S):
            run = partial(trio.run_process, stdin=b"", capture_stdout=True, capture_stderr=True, check=False)
            answer = await run([resolved, *arguments], env=environment)
            return (answer.stdout + answer.stderr)[:_SAID_CHARS].decode(errors="replace")
    except (SpawnFailed, OSError):
        pass
    return ""


async def _sandbox(servers: tuple[str, ...]) -> SandboxFacts:
    """Return whether bwrap makes a sandbox here, if any server asks for one."""
    if not servers:
        return SandboxFacts()
    try:
        program = bwrap_program()
    except SpawnFailed as error:
        return SandboxFacts(servers=servers, trouble=error.message, hint=error.hint)
    trouble = Trouble(f"no answer within {_PROGRAM_TIMEOUT_S:g} s")
    with trio.move_on_after(_PROGRAM_TIMEOUT_S):
        words = [program, *arguments(Sight()), "--", SHELL, "-c", "true"]
        try:
            answer = await trio.run_process(words, stdin=b"", capture_stdout=True, capture_stderr=True, check=False)
        except OSError as failure:
            return SandboxFacts(servers=servers, trouble=str(failure.strerror))
        if answer.returncode == 0:
            return SandboxFacts(servers=servers, path=program)
        trouble = trouble_of(answer.stderr[:_SAID_CHARS].decode(errors="replace"))
    return SandboxFacts(servers=servers, trouble=trouble.reason, hint=trouble.hint)


# Network --------------------------------------------------------------------------------------------------------------


def _daemon_at(url: str, settings: Settings) -> str:
    """Return the address at which to look for a daemon; empty if there is none."""
    host, port = settings.address
    return daemon_base(url) if url else base_url(host, port) if port else ""


async def _file_of_daemon(at: str) -> str:
    """Return the configuration file of the daemon at an address; empty if none answers, or not to us."""
    if at:
        with trio.move_on_after(_DAEMON_TIMEOUT_S):
            try:
                async with connect(at) as daemon:
                    return absolute((await daemon.configuration()).path)
            except (DaemonUnreachable, RequestRefused):
                pass
    return ""


async def _missing(at: str, named: list[str]) -> tuple[str, ...]:
    """Return which of these tools the daemon at an address does not know, those that it has said."""
    missing = list[str]()
    with trio.move_on_after(_DAEMON_TIMEOUT_S):
        try:
            async with connect(at) as daemon:
                for first in range(0, len(named), _NAMED_AT_ONCE):
                    some = named[first : first + _NAMED_AT_ONCE]
                    rows = (await daemon.perform(operations.PREFLIGHT, {"tools": some}))["tools"]
                    missing += [str(row["asked"]) for row in rows if row["status"] == "missing"]
        except (DaemonUnreachable, RequestRefused):
            pass
    return tuple(missing)


async def _port(url: str, settings: Settings) -> PortFacts:
    try:
        check_exposure(settings)
    except ConfigError as error:
        return PortFacts(listen=settings.listen, troubles=((error.message, error.hint),))
    if at := _daemon_at(url, settings):
        with trio.move_on_after(_DAEMON_TIMEOUT_S):
            try:
                async with connect(at) as daemon:
                    page = await daemon.perform(operations.STATUS)
                return PortFacts(listen=urlsplit(at).netloc if url else settings.listen, daemon=str(page["version"]))
            except (DaemonUnreachable, RequestRefused):
                pass
    troubles = await trio.to_thread.run_sync(_troubles_of, settings)
    return PortFacts(listen=settings.listen, absent=at if url else "", troubles=troubles)


def _troubles_of(settings: Settings) -> tuple[tuple[str, str], ...]:
    from supervisor.front.edge.listening import open_sockets  # only here: the web server takes a while to load

    try:
        for listener in open_sockets(settings.listen, settings.tcp_user_timeout_s):
            listener.close()
    except ConfigError as error:
        return ((error.message, error.hint),)
    return ()


def _proxies(environ: Mapping[str, str]) -> dict[str, str]:
    names = [name for scheme in _PROXY_SCHEMES for name in (f"{scheme}_proxy", f"{scheme.upper()}_PROXY")]
    return {name: without_secrets(environ[name]) for name in names if environ.get(name)}


def _is_loopback_excepted(environ: Mapping[str, str]) -> bool:
    """Whether clients that go by the variables alone ask the daemon directly."""
    excepted = {entry.strip() for entry in (environ.get("no_proxy") or environ.get("NO_PROXY") or "").split(",")}
    return bool(excepted & {"*", "127.0.0.1", "127.0.0.0/8"})


def _remote(server: ServerConfig, environ: Mapping[str, str]) -> RemoteFacts:
    scheme, _, rest = server.url.partition("://")
    url = f"{ {'ws': 'http', 'wss': 'https'}.get(scheme, scheme) }://{rest}"
    proxy = proxy_for(httpx2.URL(url), environ)
    host = urlsplit(server.url).hostname or ""
    return RemoteFacts(server=server.path_name, host=host, proxy=proxy.variable if proxy is not None else "")


async def _look_up(remotes: list[RemoteFacts]) -> list[RemoteFacts]:
    """Look the names up of those that are not behind a proxy, which does that itself."""
    looked: dict[str, str] = {}

    async def look_up(host: str) -> None:
        looked[host] = f"no answer within {_LOOKUP_TIMEOUT_S:g} s"
        with trio.move_on_after(_LOOKUP_TIMEOUT_S):
            try:
                await trio.socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
                looked[host] = ""
            except (OSError, UnicodeError) as error:
                looked[host] = error.strerror if isinstance(error, OSError) and error.strerror else "it is no name"

    async with trio.open_nursery() as nursery:
        for host in {remote.host for remote in remotes if not remote.proxy}:
            nursery.start_soon(look_up, host)
    return [
        RemoteFacts(server=each.server, host=each.host, proxy=each.proxy, trouble=looked.get(each.host))
        for each in remotes
    ]
