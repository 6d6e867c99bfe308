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

from actors.errors import CallTimedOut
from supervisor import operations
from supervisor.config.provenance import explain_server, withhold
from supervisor.front.pages.performing import describe, performs
from supervisor.front.pages.requests import REQUESTER, read_json
from supervisor.front.pages.view import View
from supervisor.host.workbench import beside
from supervisor.servers.reloading.port import Published, Reloaded
from supervisor.servers.reloading.refusal import HEADER, value_of

_WAIT_S: Final = 30.0
"""Reading a file takes milliseconds; one that hangs is on a volume that does."""
MAX_PATH_CHARS: Final = 4096


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


_CHANGE: Final = msgspec.json.Decoder(EntryChange)


async def tell_refused(view: View, response: Response) -> Response:
    """Say in the head of an answer below `/api/` that the file is refused, to who may see that."""
    refused = view.configurator.source.value.refused
    if refused and request.path.startswith("/api/") and REQUESTER.get().person.may("auditor"):
        response.headers[HEADER] = value_of(refused[0])
    return response


@performs(operations.CONFIGURATION)
async def configuration(view: View, query: ConfigurationQuery) -> Any:
    """Show the file: `path`, `loaded_at`, `token_file` with the key that changes take; its faults (`refused`).

    `restart`: settings that wait for one. With a `server`, `values` that hold for it, each with where it comes
    from; `***` for what may be secret.
    """
    source = msgspec.to_builtins(view.configurator.source.value)
    named = {"server": query.server, "values": await _values_of(view, query.server)} if query.server else {}
    return {**source, "token_file": view.token_file, **named}


async def _values_of(view: View, server: str) -> list[dict[str, Any]]:
    view.control.check(server)
    deployment = view.deployment.value
    if (entry := deployment.entries.get(server)) is None:
        return []  # it has faults, which are its state
    explained = await beside(lambda: list(withhold(explain_server(deployment, entry, deployment.environ))))
    file = deployment.path.name
    return [{**each.row(), "from": each.words(file, of_daemon=False)} for each in explained]


@performs(operations.RELOAD)
async def reload(view: View, query: ReloadQuery) -> Any:
    """Read the file again: `outcome`, `message`, `changes`; 422 with its faults if it is refused.

    `plan=true` only says what would be done, also with the file at another `path`.
    """
    if query.plan:
        return await when_done(lambda: view.configurator.plan(query.path[:MAX_PATH_CHARS]))
    return await when_done(view.configurator.reload)


@performs(operations.ADD_SERVER)
async def add_server(view: View, body: NewServer) -> Any:
    """Add a server: `{"name": ..., "entry": {...}, "ephemeral": false}`. It answers as a reload does, with 201."""
    describe(body.name, "until the daemon ends" if body.ephemeral else "")
    return await when_done(lambda: view.editor.add(body.name, body.entry, ephemeral=body.ephemeral))


@performs(operations.CHANGE_SERVER)
async def change_server(view: View, server: str) -> Any:
    """Change an entry by a merge patch (RFC 7396): `{"entry": {"idle_timeout_s": 60, "cwd": null}}`.

    null removes a key. It answers as a reload does.
    """
    view.control.check(server)  # before its body: what is below a path of no server has none
    patch = (await read_json(view.bench, _CHANGE)).entry
    describe(server, ", ".join(patch))
    return await when_done(lambda: view.editor.change(server, patch))


@performs(operations.REMOVE_SERVER)
async def remove_server(view: View, server: str) -> Any:
    """Remove a server. It answers as a reload does."""
    view.control.check(server)
    return await when_done(lambda: view.editor.remove(server))


async def when_done(work: Callable[[], Awaitable[Reloaded | Published]]) -> Any:
    """Return what work returns that reads a configuration. Raises `CallTimedOut`."""
    with trio.move_on_after(_WAIT_S):
        return msgspec.to_builtins(await work())
    raise CallTimedOut(
        f"the configuration was not read within {_WAIT_S:g} s, which goes on: see mcpvisor status", outcome="unknown"
    )
