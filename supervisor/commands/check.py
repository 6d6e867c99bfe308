"""`check`: read a configuration, start nothing, and say everything that is wrong with it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path, PurePath

import click

from actors.errors import ConfigError
from actors.kit.paths import absolute, is_file
from supervisor.commands.common import console, plain, table
from supervisor.commands.outcomes import BadConfiguration, CommandFailed
from supervisor.commands.run import check_exposure, find_config, find_published
from supervisor.config import Configuration, ServerConfig, load
from supervisor.config.remarks import lines
from supervisor.host.datadir import problems_of
from supervisor.host.places import default_data_dir

DISTRIBUTION = "mcpvisor"
_NAME = re.compile(r"[\w.+@ -]+")


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
def check(file: Path | None) -> None:
    """Check a configuration FILE, and start nothing.

    Without FILE it checks the one that `mcpvisor run` would read. It says for each problem the file, the line, the key
    and what to do. Notes name what can be used but is hardly meant: `~` in arguments, paths of Windows, placeholders, a
    program that is not there.

    \b
    mcpvisor check
    mcpvisor check mcp.json

    Exit 0 if all is right, 1 if the daemon would leave entries out, 78 if no daemon would start.
    """
    for warning in clashes(packages_distributions().get("supervisor", [])):
        click.echo(f"warning: {warning}", err=True)
    try:
        file = find_config(file, os.environ)
        configuration = load(file, os.environ, published=find_published(file, os.environ))
    except ConfigError as error:
        raise BadConfiguration(str(error)) from None
    _show(configuration)
    lines = [str(problem) for problem in configuration.problems]
    if obstacles := obstacles_of(configuration):
        raise BadConfiguration("\n".join([*lines, *map(str, obstacles), "the daemon would not start"]))
    if count := len(lines):
        lines.append(f"{count} problem{'s' if count > 1 else ''}; the daemon would start with the other servers")
        raise CommandFailed("\n".join(lines))


def obstacles_of(configuration: Configuration) -> list[ConfigError]:
    """Return what would keep a daemon from starting although the file is fine: its address, its data directory."""
    settings = configuration.settings
    obstacles = []
    try:
        check_exposure(settings)
    except ConfigError as error:
        obstacles.append(error)
    try:
        chosen = Path(settings.data_dir) if settings.data_dir else default_data_dir(os.environ)
        return [*obstacles, *problems_of(Path(absolute(str(chosen))))]
    except ConfigError as error:
        return [*obstacles, error]


def clashes(distributions: list[str]) -> list[str]:
    """Return a warning for each other distribution that has a package called `supervisor`, as supervisord has."""
    others = sorted({name for name in distributions if name.lower().replace("_", "-") != DISTRIBUTION})
    return [
        f'the package "supervisor" is also installed by the distribution "{name}" and one overwrites the other: '
        f"install {DISTRIBUTION} into a virtual environment of its own"
        for name in others
    ]


def _words(server: ServerConfig) -> Iterator[str]:
    if server.disabled:
        yield "disabled"
    if server.sandbox.kind != "none":
        yield "in a sandbox"


def _program(command: str) -> str:
    """Return the name of the program; of a whole command line, or of what is none, nothing of the rest: a secret may be
    in it.
    """
    name = PurePath(command if is_file(command) else command.split(maxsplit=1)[0]).name if command.strip() else ""
    return name if _NAME.fullmatch(name) else "-"


def _show(configuration: Configuration) -> None:
    rows = table("SERVER", "KIND", "STARTS", "NOTE")
    for server in configuration.servers:
        # Without arguments and addresses: they may hold secrets.
        rows.add_row(plain(server.path_name), server.kind, plain(_program(server.command)), ", ".join(_words(server)))
    out = console()
    out.print(rows)
    out.print(f"configuration: {plain(configuration.path).plain}", markup=False)
    out.print(f"front: {configuration.settings.listen}", markup=False)
    for line in lines(configuration.notes):
        out.print(f"note: {line}", markup=False)
