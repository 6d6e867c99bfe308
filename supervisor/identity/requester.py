"""Who sends a request, as the gate found out, and where from. Pure."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from msgspec import Struct

from actors.principal import Principal
from actors.transport.redaction import Confidential
from supervisor.identity.grants import TokenGrant
from supervisor.identity.people import OPERATOR, Person
from supervisor.identity.tokens import SavedToken


class Requester(Confidential, Struct, frozen=True, kw_only=True):
    """A person with the credential that was shown: its id, empty where none was needed, and the `token` that it is.

    Or the `grant` that it stands for, if it is one of an identity provider; `shown` is its text then: what lasts longer
    than a request asks about it again.
    """

    person: Person
    credential: str = ""
    token: SavedToken | None = None
    grant: TokenGrant | None = None
    shown: str = ""

    @property
    def is_proven(self) -> bool:
        """Whether it has shown who it is: then its role says what it may, wherever it comes from."""
        return bool(self.credential)

    @property
    def expires_at(self) -> float | None:
        """In unix seconds; None for what does not expire."""
        if self.grant is not None:
            return self.grant.expires_at
        return self.token.expires_at if self.token is not None else None

    def allows(self, scope: str) -> bool:
        """Say whether the credential is for that: own tokens have no scopes, and are for all that their role may."""
        return self.grant is None or self.grant.allows(scope)

    @property
    def principal(self) -> Principal:
        return self.person.principal


THE_OPERATOR = Requester(person=OPERATOR)
"""Whoever comes where nobody has to show who they are."""
ANYBODY = Requester(person=Person(user=""))
"""Whoever asks for what is told to anybody."""


class RequestOrigin(Struct, frozen=True):
    """Who sends a request, None for a stranger; from which address, and for which path, without its query."""

    requester: Requester | None = None
    address: str = ""
    path: str = ""


ORIGIN: Final[ContextVar[RequestOrigin | None]] = ContextVar("origin", default=None)
"""Of the request that this task serves, and of what it began; None: the daemon does it of itself."""
MESSAGE_ID: Final[ContextVar[bytes]] = ContextVar("message_id", default=b"")
"""The id of the message that this task performs, as JSON text; empty for what is no message."""
