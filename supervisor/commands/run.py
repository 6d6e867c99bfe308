"""`run`: the daemon in the foreground.

stdout says where it listens, one line `listening on URL` for each address, so that a program can wait for it.
Everything else, the log included, goes to stderr.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from socket import socket
from typing import Any, TextIO, get_args

import click
import msgspec
from msgspec.structs import replace

from actors.errors import ConfigError
from supervisor.commands.machine import RunOptions, run_machine
from supervisor.commands.outcomes import BadConfiguration
from supervisor.config import Configuration, load
from supervisor.config.address import is_loopback, split_address
from supervisor.config.edits import Change
from supervisor.config.expansion import expand, expand_home
from supervisor.config.file import read_text
from supervisor.config.jsonc import read_document
from supervisor.config.remarks import lines as lines_of
from supervisor.config.settings import Settings
from supervisor.config.values import PROVIDER_TOKENS, Auth, LogFormat
from supervisor.fleet.node_setup import BUSY, IDLE, LISTENING, NodeSetup
from supervisor.host.datadir import PUBLISHED, DataDir, open_data_dir, previous_of
from supervisor.host.loading import pause_gc, plain_interrupt
from supervisor.host.logs import logging_to_stderr
from supervisor.host.places import default_data_dir, noted
from supervisor.host.places import find_config as find_config

log = logging.getLogger(__name__)


config_option = click.option(
    "--config", "config", type=click.Path(path_type=Path), metavar="FILE", help="Configuration file."
)


@click.command()
@config_option
@click.option("--listen", metavar="HOST:PORT", help="In place of the setting `listen`; port 0 takes a free one.")
@click.option("--data-dir", type=click.Path(path_type=Path), metavar="DIR", help="In place of the setting `data_dir`.")
@click.option(
    "--idle-exit", type=click.FloatRange(0, 86400), metavar="SECONDS", help="Used where `idle_exit_s` is not set."
)
@click.option("--log-format", type=click.Choice(get_args(LogFormat)), help="In place of the setting `log_format`.")
@click.option("--as-node", is_flag=True, hidden=True)  # of a machine with several: see `supervisor.fleet.node_setup`
def run(
    config: Path | None,
    listen: str | None,
    data_dir: Path | None,
    idle_exit: float | None,
    log_format: LogFormat | None,
    *,
    as_node: bool,
) -> None:
    """Run the daemon until it gets SIGINT or SIGTERM, or its terminal is closed.

    It prints `listening on URL` on stdout once clients can connect; its log is on stderr. Without --config it reads
    mcp.json or .mcp.json in the working directory, else ~/.config/mcpvisor/mcp.json.

    \b
    mcpvisor run --config mcp.json

    Exit 0 after an end in order, 70 after a crash, 75 if the end was not in order or the system lacks what the daemon
    needs, 78 if the configuration or the data directory cannot be used.
    """
    try:
        options = RunOptions(listen=checked_address(listen), idle_exit=idle_exit, log_format=log_format)
        code = _run(find_config(config, os.environ), data_dir, options, as_node=as_node)
    except ConfigError as error:
        raise BadConfiguration(str(error)) from None
    sys.exit(code)


def _run(path: Path, data_dir: Path | None, options: RunOptions, *, as_node: bool) -> int:
    # Imported here, as in what follows: the other commands start in half the time without all that runs a daemon.
    from supervisor.front.edge.listening import open_sockets, reserve_port
    from supervisor.host.signals import outlive_terminal

    outlive_terminal()
    setup = _take_setup() if as_node else None
    published = find_published(path, os.environ, data_dir)
    source = _Source(path=path, options=options, published=published, setup=setup)
    configuration, faults = _begin(source)
    if setup is not None:  # the newest file may say what takes effect when all nodes are started again
        configuration = _with(configuration, fleet=setup.settings_of(setup.fleet))
    settings = configuration.settings
    several = setup is None and settings.fleet.nodes > 1
    if not several:
        _load_daemon()
    read = partial(_read, source, settings.auth)
    chosen = data_dir or (Path(settings.data_dir) if settings.data_dir else None)
    lock_fd, boot = (None, "") if setup is None else (setup.lock_of_data, setup.boot)
    with open_data_dir(chosen, os.environ, lock_fd, boot) as data:
        form, timeout_s = options.log_format or settings.log_format, settings.tcp_user_timeout_s
        if setup is not None:
            data.private += tuple(map(Path, setup.private))
            sockets = open_sockets(setup.listen, timeout_s, reserved=True)
            with logging_to_stderr(settings.log_level, form=form, node=setup.name):
                return _run_daemon(configuration, data, sockets, _say_urls, read, _say_idle)
        sockets = (reserve_port if several else open_sockets)(settings.listen, timeout_s)
        if form == "text":
            _say("\n".join(_introduction(configuration, data, faults)), sys.stderr)
        with noted(data.root, os.environ), logging_to_stderr(settings.log_level, form=form):
            if form == "json":  # every line on stderr is an object then
                for line in _introduction(configuration, data, faults):
                    log.info("%s", line)
            announce = partial(_announce, form=form)
            if several:
                code = run_machine(configuration, data, sockets, announce, options)
            else:
                code = _run_daemon(configuration, data, sockets, announce, read)
            log.info("ended, exit code %d", code)
            return code


def _load_daemon() -> None:
    """Load what runs a daemon, before anything is opened or said: Ctrl-C ends it as any program meanwhile."""
    with plain_interrupt(), pause_gc():
        import_module("supervisor.process")


def _run_daemon(
    configuration: Configuration,
    data: DataDir,
    sockets: list[socket],
    announce: Callable[[list[str]], None],
    read: Callable[[str, Change], Configuration],
    tell_idle: Callable[[bool], None] | None = None,
) -> int:
    from supervisor import process

    return process.run(configuration, data, sockets, announce, read, tell_idle)


def _take_setup() -> NodeSetup:
    from supervisor.fleet.node_setup import take_setup

    return take_setup()


def find_published(path: Path, environ: Mapping[str, str], data_dir: Path | None = None) -> Path | None:
    """Return where the node with this file keeps what was published; None if the file is all that it reads.

    That is asked before the file is understood, which by itself need not be whole: what is wrong with it is said later.
    """
    with suppress(ConfigError):
        if "published" not in (text := read_text(path)) and r"\u" not in text:  # else it need not be read twice
            return None
        match read_document(text, str(path)).value:
            case {"supervisor": {"fleet": {"configuration": "published"}} as own}:
                written = own.get("data_dir")
                if data_dir is None and isinstance(written, str) and written:
                    data_dir = path.parent / expand_home(expand(written, environ), environ)
                return (data_dir or default_data_dir(environ)) / PUBLISHED
    return None


class _Source(msgspec.Struct, frozen=True, kw_only=True):
    """What a daemon reads: its file, and, as a node that takes it, what was `published` for its fleet.

    `setup`: what it is told as one of several nodes of a machine.
    """

    path: Path
    options: RunOptions
    published: Path | None
    setup: NodeSetup | None

    def read(self, published: Path | None, path: str = "", change: Change = lambda text: text) -> Configuration:
        """Return what is in the file now, or in the one at another path. Raises `ConfigError`."""
        configuration = load(Path(path) if path else self.path, os.environ, self.options.listen, change, published)
        check_exposure(configuration.settings)
        if self.options.idle_exit is not None and not configuration.settings.idle_exit_s:
            configuration = _with(configuration, idle_exit_s=self.options.idle_exit)
        if self.setup is not None:
            configuration = _with(configuration, fleet=self.setup.settings_of(configuration.settings.fleet))
        return configuration


def _with(configuration: Configuration, **settings: Any) -> Configuration:
    return replace(configuration, settings=replace(configuration.settings, **settings))


def _begin(source: _Source) -> tuple[Configuration, list[ConfigError]]:
    """Return what a daemon begins with, and why that is not the newest of what was published, if it is not.

    Then it is what was in force before, or the file alone: a node that does not start could not take what is published
    to mend it. Raises `ConfigError`.
    """
    faults: list[ConfigError] = []
    copies = (source.published, previous_of(source.published), None) if source.published is not None else (None,)
    for published in copies:
        try:
            return source.read(published), faults
        except ConfigError as error:
            faults.append(error)
    raise faults[0]


def _read(source: _Source, auth: Auth, path: str, change: Change) -> Configuration:
    """Return what is there now, under the same rules as at the start; `auth` is in force. Raises `ConfigError`."""
    configuration = source.read(source.published, path, change)
    if source.published is not None and configuration.settings.auth != auth:
        raise ConfigError(
            "it takes effect when this node is started again, and nothing that was published with it is used before",
            key="supervisor.auth",
            hint="start it again",
        )
    return configuration


def checked_address(listen: str | None) -> str | None:
    """Raises `ConfigError` if the option is no address."""
    try:
        if listen is not None:
            split_address(listen)
    except ValueError as error:
        raise ConfigError(str(error), key="--listen", hint='for example "127.0.0.1:3001"') from None
    return listen


def check_exposure(settings: Settings) -> None:
    """Raise `ConfigError` for an address that others can reach, unless they show who they are and nobody reads
    along.
    """
    host, _ = settings.address
    if is_loopback(host):
        return
    if settings.auth == "none":
        fault = f"whoever can reach {host} could use every server: clients are not asked who they are"
        raise ConfigError(fault, key="listen", hint='listen on 127.0.0.1, or ask them for tokens ("auth": "tokens")')
    if not (settings.tls_certificate or settings.trusted_proxies or settings.insecure_http):
        raise ConfigError(
            f"{host} is not encrypted: whoever reads along could use the tokens of others",
            key="listen",
            hint='listen on 127.0.0.1, or set "tls_certificate", or "trusted_proxies" for a proxy that encrypts, or '
            '"insecure_http": true where nobody can read along',
        )
    if settings.auth in PROVIDER_TOKENS and not settings.public_url:
        raise ConfigError(
            "the tokens of an identity provider are for the address that clients use, which is not known",
            key="public_url",
            hint='set it, for example "https://mcp.example.com"',
        )


def _introduction(configuration: Configuration, data: DataDir, faults: Sequence[ConfigError]) -> list[str]:
    """Return what is said on stderr before all else: what was found. `faults` are those of what was published."""
    disabled = sum(server.disabled for server in configuration.servers)
    counts = [f"{len(configuration.servers) - disabled} servers"]
    counts += [f"{disabled} disabled"] if disabled else []
    counts += [f"{len(configuration.problems)} problems"] if configuration.problems else []
    return [
        f"configuration {configuration.path}: {', '.join(counts)}",
        *([f"published for the fleet: {configuration.published}"] if configuration.published else []),
        f"data in {data.root}",
        *(f"not used, as published: {fault}" for fault in faults),
        *(f"problem: {problem}" for problem in configuration.problems),
        *(f"note: {line}" for line in lines_of(configuration.notes)),
    ]


def _announce(urls: list[str], form: LogFormat) -> None:
    _say_urls(urls)
    said = f"MCP clients connect to {urls[0]}/mcp"
    if form == "text":
        _say(said, sys.stderr)
    else:
        log.info("%s", said)


def _say_urls(urls: list[str]) -> None:
    _say("\n".join(f"{LISTENING}{url}" for url in urls), sys.stdout)


def _say_idle(is_idle: bool) -> None:
    """Say it to whoever started this node, who ends all when all are idle."""
    _say(IDLE if is_idle else BUSY, sys.stdout)


def _say(text: str, stream: TextIO) -> None:
    """Print a line. Nobody may be there to read it (a closed terminal, an ended pipe): the daemon goes on."""
    try:
        click.echo(text, file=stream)
    except OSError:
        # What is left in the buffer must not fail again at exit.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
