"""The pages of the configuration: how its file does, having it read again, and changing its servers.

- What is refused is 422 with every fault of the file, its line and its key; nothing has changed then.
- Taken from this machine only, as every order is.
- Whoever adds a server has the daemon run a program. So that is taken only from who can read the daemon's own files:
  with the answer to a challenge (`supervisor/identity/operator_key.py`), or with the key in `page.key` of its data
  directory, in hexadecimal digits, as a bearer token (RFC 6750 2.1).
- While a file is refused, every answer below `/api/` says so by a header.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
import trio
from quart import Response, request
from quart_trio import QuartTrio

from actors.errors import CallTimedOut
from supervisor.config.provenance import explain_server, withhold
from supervisor.front.pages.api import View
from supervisor.front.pages.app import json_response, with_query
from supervisor.front.pages.audit import describe
from supervisor.front.pages.bodies import read_json
from supervisor.front.pages.requests import NoKey, check_from_here
from supervisor.front.pages.rights import REQUESTER
from supervisor.host.workbench import beside
from supervisor.identity.operator_key import endpoint
from supervisor.servers.reloading.port import Published, Reloaded
from supervisor.servers.reloading.refusal import HEADER, value_of

WAIT_S: Final = 30.0
"""Reading a file takes milliseconds; one that hangs is on a volume that does."""
MAX_PATH_CHARS: Final = 4096
SCHEME: Final = "bearer"


class ReloadQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`plan`: only say what would be done, also with the file at another `path`."""

    plan: bool = False
    path: str = ""


class ConfigurationQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`server`: also what holds for that one, and where each value comes from."""

    server: str = ""


class NewServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server that is to be added; `ephemeral`: not to the file, and only until the daemon ends."""

    name: str
    entry: dict[str, Any]
    ephemeral: bool = False


class EntryChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A merge patch: keys of an entry with other values, null removes one (RFC 7396)."""

    entry: dict[str, Any]


_NEW: Final = msgspec.json.Decoder(NewServer)
_CHANGE: Final = msgspec.json.Decoder(EntryChange)


def add_configuration_routes(view: View, app: QuartTrio) -> None:
    pages = ConfigurationPages(view)
    app.after_request(pages.tell_refused)
    app.add_url_rule("/api/configuration", "configuration", with_query(ConfigurationQuery, pages.source))
    app.add_url_rule("/api/reload", "reload", with_query(ReloadQuery, pages.reload), methods=["POST"])
    app.add_url_rule("/api/servers", "add_server", pages.add, methods=["POST"])
    app.add_url_rule("/api/servers/<path:server>", "change_server", pages.change, methods=["PATCH"])
    app.add_url_rule("/api/servers/<path:server>", "remove_server", pages.remove, methods=["DELETE"])


class ConfigurationPages:
    """Answers for the one configuration."""

    def __init__(self, view: View) -> None:
        self._view = view

    async def tell_refused(self, response: Response) -> Response:
        refused = self._view.configurator.source.value.refused
        if refused and request.path.startswith("/api/") and REQUESTER.get().person.may("auditor"):
            response.headers[HEADER] = value_of(refused[0])
        return response

    async def source(self, wanted: ConfigurationQuery) -> Response:
        """Show the file: `path`, `loaded_at`, `token_file` with the key that changes take; its faults (`refused`).

        `restart`: settings that wait for one. With a `server`, `values` that hold for it, each with where it comes
        from; `***` for what may be secret.
        """
        source = msgspec.to_builtins(self._view.configurator.source.value)
        named = {"server": wanted.server, "values": await self._values_of(wanted.server)} if wanted.server else {}
        return json_response({**source, "token_file": self._view.token_file, **named})

    async def _values_of(self, server: str) -> list[dict[str, Any]]:
        self._view.control.check(server)
        deployment = self._view.deployment.value
        if (entry := deployment.entries.get(server)) is None:
            return []  # it has faults, which are its state
        explained = await beside(lambda: list(withhold(explain_server(deployment, entry, deployment.environ))))
        file = deployment.path.name
        return [{**each.row(), "from": each.words(file, of_daemon=False)} for each in explained]

    async def reload(self, wanted: ReloadQuery) -> Response:
        """Read the file again: `outcome`, `message`, `changes`; 422 with its faults if it is refused.

        `plan=true` only says what would be done, also with the file at another `path`.
        """
        check_from_here(request.scope)
        configurator = self._view.configurator
        if wanted.plan:
            return await when_done(lambda: configurator.plan(wanted.path[:MAX_PATH_CHARS]))
        return await when_done(configurator.reload)

    async def add(self) -> Response:
        """Add a server: `{"name": ..., "entry": {...}, "ephemeral": false}`. It answers as a reload does, with 201."""
        check_key(self._view, "changing the configuration", "mcpvisor add")
        new = await read_json(self._view.bench, _NEW)
        describe(new.name, "until the daemon ends" if new.ephemeral else "")
        return await when_done(lambda: self._view.editor.add(new.name, new.entry, ephemeral=new.ephemeral), 201)

    async def change(self, server: str) -> Response:
        """Change an entry by a merge patch (RFC 7396): `{"entry": {"idle_timeout_s": 60, "cwd": null}}`.

        null removes a key. It answers as a reload does.
        """
        check_key(self._view, "changing the configuration", "mcpvisor add")
        self._view.control.check(server)
        patch = (await read_json(self._view.bench, _CHANGE)).entry
        describe(server, ", ".join(patch))
        return await when_done(lambda: self._view.editor.change(server, patch))

    async def remove(self, server: str) -> Response:
        """Remove a server. It answers as a reload does."""
        check_key(self._view, "changing the configuration", "mcpvisor add")
        self._view.control.check(server)
        return await when_done(lambda: self._view.editor.remove(server))


def check_key(view: View, what: str, command: str) -> None:
    """Raise `NoKey` for a request of somebody who has not shown that they may do `what`, for which there is a command.

    Who they are, or that they may read the daemon's files, which a program that only reaches its address may not.
    """
    check_from_here(request.scope)
    if REQUESTER.get().is_proven:
        return
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    shown = given.strip() if scheme.lower() == SCHEME else ""
    end = endpoint(request.scope.get("server") or ("", 0))
    path = bytes(request.scope["raw_path"]).partition(b"?")[0].decode("ascii")
    if not view.operator.admits(shown, end, request.method, path):
        raise NoKey(
            f"{what} takes the key in page.key of the daemon's data directory, in hexadecimal digits: Authorization: "
            f"Bearer KEY; the command is {command}",
            details=dict(view.operator.challenge(end)),
        )


async def when_done(work: Callable[[], Awaitable[Reloaded | Published]], status: int = 200) -> Response:
    """Answer with what work returns that reads a configuration. Raises `CallTimedOut`."""
    with trio.move_on_after(WAIT_S):
        return json_response(msgspec.to_builtins(await work()), status)
    raise CallTimedOut(
        f"the configuration was not read within {WAIT_S:g} s, which goes on: see mcpvisor status", outcome="unknown"
    )
