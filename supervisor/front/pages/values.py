"""Values of teams and users as pages: shown, given, taken back (`/api/values`).

- Whoever comes in sees and gives what is their own; an admin sees and gives that of all. What is another's is answered
  as a page that does not exist.
- No answer has a value that is secret, and none to a change has any.
"""

from __future__ import annotations

from typing import Any, Final, get_args

import msgspec
import trio
from quart import abort

from actors.errors import InvalidArguments
from supervisor import operations
from supervisor.config.keys import name_fault
from supervisor.front.pages.performing import describe, performs
from supervisor.front.pages.requests import REQUESTER, read_json
from supervisor.front.pages.view import View
from supervisor.identity.people import Given, Person, Tier, Value
from supervisor.values.rows import ShownValues, ValueRow, awaits_team, rows_of_server, team_of, tiered_servers
from supervisor.values.table import ValuePlace, check_owner, check_server


class ValuesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose values, for an admin; of which server, for all without one."""

    user: str = ""
    team: str = ""
    server: str = ""


class NewValue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value, a text or a list of arguments; `locked`: users may not give another one."""

    value: Value
    locked: bool = False


_NEW: Final = msgspec.json.Decoder(NewValue)


@performs(operations.VALUES)
async def values(view: View, query: ValuesQuery) -> Any:
    """Show the values that your servers take: who gives each, which one holds, what is missing. Secrets are `***`.

    An admin says whose by `user` or `team`; `team` with a `user` is the one of the user's teams that counts.
    """
    deployment, asker = view.deployment.value, REQUESTER.get().person
    user = _user_of(view, asker, query)
    if query.server:
        check_server(deployment, asker, query.server)
    rows: list[ValueRow] = []
    awaiting: list[str] = []
    for server in tiered_servers(deployment, user):
        await trio.lowlevel.checkpoint()
        if query.server in ("", server):
            team = query.team if user is None else team_of(deployment, user, server)
            rows += rows_of_server(deployment, server, user=user, team=team)
            if user is not None and awaits_team(deployment.entries[server], deployment.effective_for(server, user)):
                awaiting.append(server)
    shown = ShownValues(
        user=user.user if user is not None else "", team=query.team, values=rows, awaiting_team=awaiting
    )
    return msgspec.to_builtins(shown)


def _user_of(view: View, asker: Person, wanted: ValuesQuery) -> Person | None:
    """Return whose values are to be shown; None for those of the team."""
    deployment = view.deployment.value
    if not (wanted.user or wanted.team):
        if not asker.user:
            raise InvalidArguments(
                "say whose values, as the operator has none: user=NAME or team=NAME (--user or --team)",
                details={"parameter": "user"},
            )
        return asker
    if not asker.may("admin") and (wanted.team or wanted.user != asker.user):
        abort(404)
    if not wanted.user:
        check_owner(deployment, "team", wanted.team)
        return None
    if wanted.user == asker.user and not wanted.team:
        return asker
    person = deployment.person(wanted.user, role="admin", team=wanted.team)
    if person is None:
        where = f" in the team {wanted.team[:100]!r}" if wanted.team else ""
        raise InvalidArguments(f'there is no user {wanted.user[:100]!r}{where} in "identity" of the configuration')
    return person


@performs(operations.GIVE_VALUE)
async def give_value(view: View, tier: str, owner: str, server: str, name: str) -> Any:
    """Give a value: `{"value": "...", "locked": false}`, or a list where it stands for several arguments.

    `tier` is `user` or `team`, `owner` whose it is: yourself, or for an admin anybody.
    """
    place = _place(view, tier, owner, server, name)
    has = 'it has "value", a text or a list of texts, and "locked", true or false'
    new = await read_json(view.bench, _NEW, has)
    await view.values.give(REQUESTER.get().person, place, Given(value=new.value, locked=new.locked))
    return {"given": {**_members_of(place), "locked": new.locked}}


@performs(operations.FORGET_VALUE)
async def forget_value(view: View, tier: str, owner: str, server: str, name: str) -> Any:
    """Take a value back that was given so."""
    place = _place(view, tier, owner, server, name)
    await view.values.forget(REQUESTER.get().person, place)
    return {"forgotten": _members_of(place)}


def _place(view: View, tier: str, owner: str, server: str, name: str) -> ValuePlace:
    """Return what is to be changed, if whoever asks may."""
    asker = REQUESTER.get().person
    if tier not in get_args(Tier) or not (asker.may("admin") or (tier == "user" and owner == asker.user)):
        abort(404)
    describe(server, f"{name} of the {tier} {owner}")
    for each in (owner, server):
        if fault := name_fault(each):
            raise InvalidArguments(fault)
    return ValuePlace("team" if tier == "team" else "user", owner, server, name)


def _members_of(place: ValuePlace) -> dict[str, Any]:
    return {"tier": place.tier, "owner": place.owner, "server": place.server, "name": place.name}
