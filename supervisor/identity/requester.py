"""Who sends a request, as the gate found out. Pure."""

from __future__ import annotations

from msgspec import Struct

from actors.principal import Principal
from supervisor.identity.people import OPERATOR, Person
from supervisor.identity.tokens import SavedToken


class Requester(Struct, frozen=True, kw_only=True):
    """A person with the credential that was shown: its id, empty where none was needed, and the `token` that it is."""

    person: Person
    credential: str = ""
    token: SavedToken | None = None

    @property
    def is_proven(self) -> bool:
        """Whether it has shown who it is: then its role says what it may, wherever it comes from."""
        return bool(self.credential)

    @property
    def expires_at(self) -> float | None:
        """In unix seconds; None for what does not expire."""
        return self.token.expires_at if self.token is not None else None

    @property
    def principal(self) -> Principal:
        return self.person.principal


THE_OPERATOR = Requester(person=OPERATOR)
"""Whoever comes where nobody has to show who they are."""
ANYBODY = Requester(person=Person(user=""))
"""Whoever asks for what is told to anybody."""
