"""The clients of this machine: which are installed, where their files are, what is in them. Blocks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from actors.errors import ConfigError
from actors.kit.paths import is_file, objection_to_directory
from supervisor.clients.documents import read_servers
from supervisor.clients.entries import ServerSource
from supervisor.config.clients import ClientProgram, Machine
from supervisor.host.files import read_if_there


class ClientFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a client as it was read; `text` is None if there is none. `folder`: of the project that it is for."""

    client: ClientProgram
    path: Path
    text: str | None
    folder: str | None = None

    def sources(self, folder: str | None = None) -> Iterator[ServerSource]:
        """Yield the places with servers in it, those for `folder` included. Raises `ConfigError`."""
        client, text, path = self.client, self.text or "", str(self.path)
        servers = read_servers(client.format, text, client.servers, path)
        yield ServerSource(client=client, path=path, where=client.servers, servers=servers, folder=self.folder)
        if client.local_scope and folder is not None and self.folder is None:
            where = ("projects", folder, *client.servers)
            servers = read_servers(client.format, text, where, path)
            yield ServerSource(client=client, path=path, where=where, servers=servers, folder=folder)


def is_installed(client: ClientProgram, machine: Machine) -> bool:
    """Say whether there is a folder, a file or a program of a client."""
    places = any(objection_to_directory(folder) == "" for folder in client.folders(machine))
    places = places or any(is_file(place) for place in client.places(machine))
    return places or any(shutil.which(name, path=machine.environ.get("PATH", "")) for name in client.programs)


def user_file(client: ClientProgram, machine: Machine) -> ClientFile:
    """Return its file of the user. Raises `ConfigError` if it cannot be read."""
    places = client.places(machine)
    path = Path(next((place for place in places if is_file(place)), places[-1]))
    return ClientFile(client=client, path=path, text=read_if_there(path))


def project_file(client: ClientProgram, folder: Path) -> ClientFile:
    """Return its file of a project. Raises `ConfigError` if it has none, or it cannot be read."""
    if not client.project:
        raise ConfigError(f"{client.title} has no file for a project", hint="leave out --project")
    paths = [folder / name for name in client.project]
    path = next((each for each in paths if is_file(str(each))), paths[-1])
    return ClientFile(client=client, path=path, text=read_if_there(path), folder=str(folder))
