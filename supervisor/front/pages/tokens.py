"""Tokens as pages: made, listed, revoked (`/api/access-tokens`), by an admin alone.

The text of a token is in one answer, that to the request that made it, and never shown again.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from actors.errors import InvalidArguments
from supervisor import operations
from supervisor.config.keys import name_fault
from supervisor.front.pages.performing import performs
from supervisor.front.pages.view import View
from supervisor.identity.people import Person
from supervisor.identity.tokens import MAX_LABEL_CHARS, SavedToken, id_of
from supervisor.operations import Role
from supervisor.servers.deployment import Deployment
from supervisor.service.doors.addresses import personal_path
from supervisor.service.realms import servers_by

MAX_EXPIRES_S: Final = 10 * 366 * 86_400.0


class NewToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `POST /api/access-tokens` takes. Without `expires_in_s` the token does not expire.

    With a `server` it is for the personal address of that alone.
    """

    user: str
    team: str = ""
    server: str = ""
    role: Role = "member"
    label: Annotated[str, msgspec.Meta(max_length=MAX_LABEL_CHARS)] = ""
    expires_in_s: Annotated[float, msgspec.Meta(gt=0, le=MAX_EXPIRES_S)] | None = None


@performs(operations.ACCESS_TOKENS)
async def access_tokens(view: View) -> Any:
    """List all tokens: whose each is, what it gives, when it expires, when it was used last."""
    return {"tokens": [token_row(token) for token in view.tokens.all()]}


@performs(operations.REVOKE_TOKEN)
async def revoke_token(view: View, id_: str) -> Any:
    """Let a token be none any more, at once."""
    return {"revoked": token_row(await view.tokens.revoke(id_))}


@performs(operations.MAKE_TOKEN)
async def create_token(view: View, body: NewToken) -> Any:
    """Make a token: `{"user": ..., "team": ..., "role": ..., "server": ..., "label": ..., "expires_in_s": ...}`.

    Its text is in this answer alone. With a `server` it is for the `address` of that, in the answer, and no other.
    """
    return await make_token(view, body)


async def make_token(view: View, new: NewToken) -> dict[str, Any]:
    """Make a token, and return its row with its text, which nobody can show again, and the `address` it is for if any.

    Raises `InvalidArguments` for somebody who is not there, and what `TokenTable.make` raises.
    """
    for name in filter(None, (new.user or " ", new.team)):
        if fault := name_fault(name):
            raise InvalidArguments(fault)
    deployment, now = view.deployment.value, view.clock()
    person = deployment.person(new.user, role=new.role, team=new.team)
    if person is None:
        where = f" in the team {new.team!r}" if new.team else ""
        raise InvalidArguments(f'there is no user {new.user!r}{where} in "identity" of the configuration')
    server = _server_for(person, new, deployment) if new.server else ""
    until = None if new.expires_in_s is None else now + new.expires_in_s
    text, token = await view.tokens.make(
        new.user, role=new.role, team=new.team, server=server, label=new.label, expires_at=until, now=now
    )
    address = {"address": personal_path(server)} if server else {}
    return {"token": text, **token_row(token), **address}


def _server_for(person: Person, new: NewToken, deployment: Deployment) -> str:
    """Return the name of the server that a token is for. Raises `InvalidArguments` if its user does not have it."""
    if new.role != "member":
        raise InvalidArguments(f"a token for one server has the role 'member', not {new.role!r}: it opens no page")
    server = deployment.names.literal(new.server)
    if server is None or server not in servers_by(person.rights, deployment):
        raise InvalidArguments(f"{new.user} has no server {new.server[:64]!r}; mcpvisor status lists all there are")
    return server


def token_row(token: SavedToken) -> dict[str, Any]:
    """Return what is shown of a token: nothing that it could be used with."""
    return {
        "id": id_of(token.digest),
        "user": token.user,
        "team": token.team,
        "role": token.role,
        "server": token.server,
        "label": token.label,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "used_at": token.used_at,
    }
