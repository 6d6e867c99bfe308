"""`run`: the daemon in the foreground.

stdout says where it listens, one line `listening on URL` for each address, so that a program can wait for it.
Everything else, the log included, goes to stderr.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TextIO, get_args

import click
from msgspec.structs import replace

from actors.errors import ConfigError
from supervisor.commands.outcomes import BadConfiguration
from supervisor.config import Configuration, load
from supervisor.config.entries.edits import Change
from supervisor.config.entries.remarks import lines as lines_of
from supervisor.config.structs import Settings
from supervisor.config.syntax.address import is_loopback, split_address
from supervisor.config.syntax.units import PROVIDER_TOKENS, LogFormat
from supervisor.host.config_file import find_config as find_config
from supervisor.host.datadir import DataDir, open_data_dir
from supervisor.host.loading import pause_gc, plain_interrupt
from supervisor.host.logs import logging_to_stderr

log = logging.getLogger(__name__)

LISTENING = "listening on "


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
def run(
    config: Path | None,
    listen: str | None,
    data_dir: Path | None,
    idle_exit: float | None,
    log_format: LogFormat | None,
) -> None:
    """Run the daemon until it gets SIGINT or SIGTERM.

    It prints `listening on URL` on stdout once clients can connect; its log is on stderr. Without --config it reads
    mcp.json or .mcp.json in the working directory, else ~/.config/mcpvisor/mcp.json.

    \b
    mcpvisor run --config mcp.json

    Exit 0 after an end in order, 70 after a crash, 75 if the end was not in order or the system lacks what the daemon
    needs, 78 if the configuration or the data directory cannot be used.
    """
    try:
        code = _run(find_config(config, os.environ), listen, data_dir, idle_exit, log_format)
    except ConfigError as error:
        raise BadConfiguration(str(error)) from None
    sys.exit(code)


def _run(
    path: Path, listen: str | None, data_dir: Path | None, idle_exit: float | None, log_format: LogFormat | None
) -> int:
    with plain_interrupt(), pause_gc():
        # Imported here: the other commands start in half the time without the web server.
        from supervisor import process
        from supervisor.front.edge.listening import open_sockets
        from supervisor.host.signals import outlive_terminal

    outlive_terminal()
    configuration = _with_idle_exit(load(path, os.environ, checked_address(listen)), idle_exit)
    settings = configuration.settings
    check_exposure(settings)
    chosen = data_dir or (Path(settings.data_dir) if settings.data_dir else None)
    with open_data_dir(chosen, os.environ) as data:
        sockets = open_sockets(settings.listen, settings.tcp_user_timeout_s)
        form = log_format or settings.log_format
        if form == "text":
            _say("\n".join(_introduction(configuration, data)), sys.stderr)
        with logging_to_stderr(settings.log_level, form=form):
            if form == "json":  # every line on stderr is an object then
                for line in _introduction(configuration, data):
                    log.info("%s", line)
            announce = partial(_announce, form=form)
            code = process.run(configuration, data, sockets, announce, partial(_read, path, listen, idle_exit))
            log.info("ended, exit code %d", code)
            return code


def _read(path: Path, listen: str | None, idle_exit: float | None, other: str, change: Change) -> Configuration:
    """Return what is in the file now, or in another one, under the same rules as at the start. Raises `ConfigError`."""
    configuration = load(Path(other) if other else path, os.environ, listen, change)
    check_exposure(configuration.settings)
    return _with_idle_exit(configuration, idle_exit)


def _with_idle_exit(configuration: Configuration, idle_exit: float | None) -> Configuration:
    if idle_exit is None or configuration.settings.idle_exit_s:
        return configuration
    return replace(configuration, settings=replace(configuration.settings, idle_exit_s=idle_exit))


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


def _introduction(configuration: Configuration, data: DataDir) -> list[str]:
    """Return what is said on stderr before all else: what was found."""
    disabled = sum(server.disabled for server in configuration.servers)
    counts = [f"{len(configuration.servers) - disabled} servers"]
    counts += [f"{disabled} disabled"] if disabled else []
    counts += [f"{len(configuration.problems)} problems"] if configuration.problems else []
    return [
        f"configuration {configuration.path}: {', '.join(counts)}",
        f"data in {data.root}",
        *(f"problem: {problem}" for problem in configuration.problems),
        *(f"note: {line}" for line in lines_of(configuration.notes)),
    ]


def _announce(urls: list[str], form: LogFormat) -> None:
    _say("\n".join(f"{LISTENING}{url}" for url in urls), sys.stdout)
    said = f"MCP clients connect to {urls[0]}/mcp"
    if form == "text":
        _say(said, sys.stderr)
    else:
        log.info("%s", said)


def _say(text: str, stream: TextIO) -> None:
    """Print a line. Nobody may be there to read it (a closed terminal, an ended pipe): the daemon goes on."""
    try:
        click.echo(text, file=stream)
    except OSError:
        # What is left in the buffer must not fail again at exit.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
