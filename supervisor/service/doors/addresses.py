"""Which doors there are, and where: the first one at `/mcp`, the others below it, each of them for each profile.

The first one is there once more where reading is apart from acting: `/mcp?execute=by-effect` has a tool more, which
only reads. That is an address of its own, as a list must not differ by connection (MCP 2026-07-28, server/tools).

The door of a server is there once more at its personal address, `/i/NAME/mcp`, for who has a token for that one server:
with sessions of its own, and without a word about what else there is.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple
from urllib.parse import parse_qs, quote

import trio
from msgspec.structs import replace

from actors.errors import UnknownDoor
from supervisor.config.keys import nearest
from supervisor.identity.people import Person, Rights, Viewer
from supervisor.metatools.texts import clean
from supervisor.service.doors.everything import Everything
from supervisor.service.doors.one_server import OneServer
from supervisor.service.gateway import BY_EFFECT as FIVE
from supervisor.service.gateway import Gateway
from supervisor.service.lookup.visible import ClientView, Visible
from supervisor.service.port import Door
from supervisor.service.realms import Realm, Realms

MCP_PATH: Final = "/mcp"
ALL: Final = "all"
ALL_PATH: Final = f"{MCP_PATH}/{ALL}"
SERVERS: Final = "servers/"
PERSONAL: Final = "i/"
PERSONAL_PATH: Final = f"/{PERSONAL}"
DOORS: Final = {
    "": MCP_PATH,
    ALL: ALL_PATH,
    SERVERS: f"{MCP_PATH}/{SERVERS}{{server}}",
    PERSONAL: f"{PERSONAL_PATH}{{server}}{MCP_PATH}",
}
"""The address of each kind of door by its name; by what the name begins with where a server is behind it."""
CARD: Final = "/server-card"
"""What an address ends with where the card of a door is; see `cards`."""
PROFILE: Final = "profile"
"""The parameter of an address that names a profile."""
EXECUTE: Final = "execute"
BY_EFFECT: Final = "by-effect"
"""The parameter of an address that says how tools are run there, and its one value."""
MAX_NAMED: Final = 20
"""Servers, and profiles, that are named where another one was asked for."""
MAX_NAME_SHOWN: Final = 64
_MAX_FIELDS: Final = 20
MAX_REALMS: Final = 1000
"""So many are kept, by all their profiles, for those who come again; what is under way keeps its own."""


class DoorTable:
    """Implements `supervisor.service.port.Doors`: for everybody by `find`, for a person by `find_for`.

    `run` has to run as long as it does.
    """

    def __init__(
        self, gateway: Gateway, version: str, prepare: Callable[[Person], Awaitable[None]] | None = None
    ) -> None:
        """`prepare` has what is started for a person be there."""
        self._prepare = prepare
        self._gateway = gateway
        self._version = version
        self._deployment = gateway.parts.deployment
        self._plugins = gateway.parts.plugin_table
        self._of_all = {"": _Doors(gateway, gateway, version, "")}
        self._of_rights: OrderedDict[Rights, dict[str, _Doors]] = OrderedDict()
        """Those of everybody, and of the people who came last, by profile: empty for who asks for none."""
        changed = gateway.introduction.others_changed
        self._realms = Realms(
            gateway.parts.catalogue, self._deployment, lambda: changed.set(changed.value + 1), self._plugins
        )

    def find(self, name: str, profile: str = "", execute: str = "") -> Door:
        return self._of_view(None, self._profile_of(profile)).find(name, execute)

    async def find_for(self, person: Person, name: str, profile: str = "", execute: str = "") -> Door:
        realm = await self._realm_of(person, profile)
        doors = self._of_view(realm, self._profile_of(profile, own=realm is None))
        if doors.prepared_for != self._deployment.version:
            await doors.prepare()
        door = doors.find(name, execute)
        if execute and isinstance(door.service, Gateway):
            await door.service.introduction.prepare()
        return door

    async def seen_by(self, person: Person) -> Visible:
        """Return what somebody sees. A checkpoint for the first with such servers."""
        return self._of_view(await self._realm_of(person, ""), "").view.visible

    async def _realm_of(self, person: Person, profile: str) -> Realm | None:
        """Return what people with these rights see; None if that is what everybody sees."""
        hides = bool(self._plugins.hiding)
        if not (person.user or hides):
            return None
        if person.user and self._prepare is not None:
            await self._prepare(person)
        return await self._realms.of(
            replace(person.rights, viewer=self._viewer(person, profile)) if hides else person.rights
        )

    def _viewer(self, person: Person, profile: str) -> Viewer:
        """Return who somebody is for plugins. A profile that there is not is none: what clients make up has no end."""
        settings = self._deployment.value.settings
        profile = profile or settings.profile
        teams = settings.identity.teams_of(person.user, person.team)
        known = profile if profile in settings.profiles else ""
        return Viewer(user=person.user, role=person.role, teams=teams, profile=known)

    def _profile_of(self, asked: str, *, own: bool = True) -> str:
        """Return the profile of who asks for one, or for none. Raises `UnknownDoor`.

        `own`: the configuration is theirs to know; what there is for others is not.
        """
        settings = self._deployment.value.settings
        profile, profiles = asked or settings.profile, settings.profiles
        if not profile or profile in profiles:
            return profile
        text = f"there is no profile {clean(profile[:MAX_NAME_SHOWN])!r}"
        if not own:
            raise UnknownDoor(f"{text}; ask whoever runs this daemon for its name")
        likely = nearest(profile, profiles)
        there = f"there are: {_some(sorted(profiles))}" if profiles else 'the configuration has no "profiles"'
        raise UnknownDoor(
            f"{text}; did you mean {likely!r}?" if likely else f"{text}; {there}",
            details={"profiles": sorted(profiles)[:MAX_NAMED], "nearest": [likely] if likely else []},
        )

    def _of_view(self, realm: Realm | None, profile: str) -> _Doors:
        """Return the doors of those who come in one way."""
        if realm is None:
            known = self._of_all
        else:
            known = self._of_rights.setdefault(realm.rights, {})
            self._of_rights.move_to_end(realm.rights)
            if len(self._of_rights) > MAX_REALMS:
                self._of_rights.popitem(last=False)
        return known.get(profile) or self._open(realm, profile, known)

    def _open(self, realm: Realm | None, profile: str, known: dict[str, _Doors]) -> _Doors:
        for gone in known.keys() - self._deployment.value.settings.profiles.keys() - {""}:
            del known[gone]
        gateway = Gateway(self._gateway.parts, self._view(realm, profile), self._version)
        self._gateway.introduction.include(gateway.introduction)
        suffix = f"?{PROFILE}={profile}" if profile else ""
        doors = known[profile] = _Doors(gateway, self._gateway, self._version, suffix)
        return doors

    def _view(self, realm: Realm | None, profile: str) -> ClientView:
        if profile:
            return self._of_view(realm, "").view.by_profile(profile)
        assert realm is not None, "what everybody sees is there"
        return self._gateway.view.of_realm(realm)

    async def run(self) -> None:
        """Keep what people see up with the catalogue, and have what is seen by each profile be there before it is
        asked for.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._realms.run)
            while True:
                version = self._deployment.version
                for profile in self._deployment.value.settings.profiles:
                    await self._of_view(None, profile).prepare()
                await self._deployment.wait_newer(version)


class _Doors:
    """Those of who come in one way. `suffix`: what their names end with. `main` keeps all introductions up to date."""

    def __init__(self, gateway: Gateway, main: Gateway, version: str, suffix: str) -> None:
        self._main = main
        self._version = version
        self._by_effect: Door | None = None
        self._parts = gateway.parts
        self.prepared_for = -1
        """The version of the deployment for which all is there that is seen here."""
        self.view = gateway.view
        self.introduction = gateway.introduction
        self._suffix = suffix
        everything = Everything(gateway.parts, gateway.view, version, gateway.introduction.told)
        self._ours = {"": Door(suffix, gateway), ALL: Door(f"{ALL}{suffix}", everything)}
        self._below = {SERVERS: self._of_server, PERSONAL: self._personal}
        assert {*self._ours, *self._below} == DOORS.keys()
        self._servers: dict[str, Door] = {}
        self._personals: dict[str, Door] = {}

    async def prepare(self) -> None:
        """Have what is seen here be there: a first look at many tools takes long. A checkpoint then."""
        version = self._parts.deployment.version
        await self.view.visible.prepare()
        await self.introduction.prepare()
        self.prepared_for = version

    def find(self, name: str, execute: str = "") -> Door:
        """Return the door of an address; `execute` is what that says of how tools are run there."""
        if execute:
            return self._where_reading_is_apart(name, execute)
        if name in self._ours:
            return self._ours[name]
        for below, find in self._below.items():
            if name.startswith(below):
                return find(name)
        raise UnknownDoor(
            f"there is no MCP server at this address: {clean(name[:MAX_NAME_SHOWN])!r}; there are /mcp, /mcp/all, and "
            "/mcp/servers/NAME for each server"
        )

    def _where_reading_is_apart(self, name: str, execute: str) -> Door:
        right = f"{MCP_PATH}?{EXECUTE}={BY_EFFECT}"
        if execute != BY_EFFECT:
            text = f"{EXECUTE}={clean(execute[:MAX_NAME_SHOWN])} means nothing at this address; there is {right}"
            raise UnknownDoor(text, details={EXECUTE: [BY_EFFECT]})
        if name:
            raise UnknownDoor(f"{EXECUTE}={BY_EFFECT} is for {MCP_PATH} alone, which has the tools that it is about")
        if self._by_effect is None:
            gateway = Gateway(self._parts, self.view, self._version, FIVE)
            self._main.introduction.include(gateway.introduction)
            sign = "&" if self._suffix else "?"
            self._by_effect = Door(f"{self._suffix}{sign}{EXECUTE}={BY_EFFECT}", gateway)
        return self._by_effect

    def _of_server(self, address: str) -> Door:
        called = address.removeprefix(SERVERS)
        names = self._parts.deployment.value.names
        server = names.literal(called)
        if server is None or not self.view.visible.may_have(server):
            known = sorted(filter(self.view.visible.may_have, names.servers))
            raise UnknownDoor(
                f"no server {clean(called[:MAX_NAME_SHOWN])!r} is configured; there are: {_some(known) or 'none'}; "
                "/api/status says how they do",
                details={"servers": known[:MAX_NAMED]},
            )
        door = self._servers.get(server)
        if door is None:
            self._servers = {name: door for name, door in self._servers.items() if name in names.servers}
            name = f"{SERVERS}{server}{self._suffix}"
            door = self._servers[server] = Door(name, OneServer(server, self._parts, self.view))
        return door

    def _personal(self, name: str) -> Door:
        """Return the door at the personal address of a server, whose name is spelled exactly."""
        server = name.removeprefix(PERSONAL)
        if server not in self._parts.deployment.value.server_names or not self.view.visible.may_have(server):
            raise UnknownDoor("there is no MCP server at this address, or none any more; ask whoever gave it to you")
        service = self._of_server(server).service
        door = self._personals.get(server)
        if door is None or door.service is not service:
            door = self._personals[server] = Door(f"{name}{self._suffix}", service)
        return door


def _some(names: list[str]) -> str:
    return ", ".join(names[:MAX_NAMED]) + (", ..." if len(names) > MAX_NAMED else "")


def door_of(path: str) -> str | None:
    """Return the name of the door that a path means, empty for the first one; None if it is none, as of a card.

    A slash at the end changes nothing: servers of the official SDKs send a client on from one form to the other, and
    many a client has the longer one written down.
    """
    path = path.removesuffix("/")
    if path == MCP_PATH:
        return ""
    if has_card(path):
        return None
    if server := personal_server(path):
        return f"{PERSONAL}{server}"
    below = path.removeprefix(f"{MCP_PATH}/")
    return below if below not in ("", path) else None


def has_card(path: str) -> bool:
    """Say whether a path is that of the card of a door."""
    door = path.removesuffix(CARD)
    server = door.removeprefix(f"{MCP_PATH}/{SERVERS}")
    return door != path and (door in (MCP_PATH, ALL_PATH) or (server not in ("", door) and "/" not in server))


def personal_server(path: str) -> str:
    """Return the server whose personal address a path is; empty for any other path."""
    between = path.removeprefix(PERSONAL_PATH).removesuffix(MCP_PATH)
    return between if path == f"{PERSONAL_PATH}{between}{MCP_PATH}" else ""


def personal_path(server: str) -> str:
    return f"{PERSONAL_PATH}{quote(server, safe='')}{MCP_PATH}"


class Chosen(NamedTuple):
    """What an address says of its door behind the question mark; each is empty if it says nothing."""

    profile: str = ""
    execute: str = ""


NOTHING_CHOSEN: Final = Chosen()


def chosen_by(target: bytes) -> Chosen:
    """Return what the address of a request says of its door; of what it says several times, the last.

    Raises `UnknownDoor` where it may say something that cannot be read: who asked for less must not see all.
    """
    asked = target.partition(b"?")[2]
    if not asked:
        return NOTHING_CHOSEN
    try:
        said = parse_qs(asked.decode("ascii"), max_num_fields=_MAX_FIELDS)
    except ValueError:
        if PROFILE.encode() in asked or EXECUTE.encode() in asked:
            text = (
                f"what follows the ? of this address cannot be read: it has over {_MAX_FIELDS} fields, or is not ASCII"
            )
            raise UnknownDoor(text) from None
        return NOTHING_CHOSEN
    return Chosen(*(said.get(name, [""])[-1] for name in (PROFILE, EXECUTE)))


def path_of(server: str) -> str:
    return f"{MCP_PATH}/{SERVERS}{quote(server, safe='')}"
