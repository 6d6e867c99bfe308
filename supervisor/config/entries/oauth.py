"""The settings of logins at one remote server: the object `oauth` of an entry. See `structs` for the rules.

Other programs write such an object, too: what they call otherwise is read as ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from actors.transport.redaction import Confidential
from supervisor.config.clients.table import keys_by_name
from supervisor.config.syntax.keys import hint_of, is_comment, translate
from supervisor.config.syntax.limits import is_address
from supervisor.config.syntax.units import Grant, SigningAlgorithm, Whose
from supervisor.config.syntax.values import keys_of

_KEYS: Final = {name.removeprefix("oauth."): each for name, each in keys_by_name().items() if name.startswith("oauth.")}
SPELLINGS: Final = {
    name: key.to for name, clients in _KEYS.items() for key in clients.values() if key.meaning == "renamed"
}
"""What clients write in place of our keys."""
_ADDRESSES: Final = ("client_metadata_url", "issuer", "redirect_uri")


class OAuthConfig(Confidential, Struct, frozen=True, kw_only=True):
    """How to log in at a remote server, expanded and validated. Most servers need none of it."""

    enabled: bool = True
    """Log in where the server asks for it. A header `Authorization` in `headers` wins."""
    login: Whose = "everyone"
    """Whose the login is. `everyone`: one login, made by an operator, for all who have the server. `user`: each user
    logs in, and nobody uses the login of another one."""
    grant: Grant = "authorization_code"
    """`authorization_code`: a user says yes in a browser (`mcpvisor login`). `client_credentials`: the daemon logs in
    for itself, without a user."""
    client_id: str = ""
    """The client as which the daemon was registered; empty: it registers itself."""
    client_secret: str = ""
    """The secret of that client, best as `${NAME}`."""
    private_key: str = ""
    """A private key in PEM in place of the secret (`private_key_jwt`), best as `${NAME}`."""
    signing_alg: SigningAlgorithm = "RS256"
    """The algorithm by which that key signs."""
    scope: str = ""
    """What to ask for, words with blanks between them; empty: what the server wants."""
    issuer: str = ""
    """The authorization server that knows the client. No other one gets its secret."""
    client_metadata_url: str = ""
    """Address of a client ID metadata document of yours, for authorization servers that take one."""
    redirect_uri: str = ""
    """Where the browser comes back to; empty: the daemon's own address and `/oauth/callback`."""


Problem = Callable[[str, str, str], None]
"""Records a fault of one key: the key, what is wrong, and what to do."""


def translate_oauth(members: Mapping[str, Any], problem: Problem) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the members under our keys, and for those spelt otherwise how; an unknown one is a problem."""
    ours = keys_of(OAuthConfig)
    for name in members:
        if name not in ours and name not in _KEYS and not is_comment(name):
            problem(name, "unknown key", hint_of(name, [*ours, *_KEYS], f"known are {', '.join(ours)}"))
    own, spelled = translate(members, ours, SPELLINGS)
    own = {key: value for key, value in own.items() if value is not None}
    scope = own.get("scope")
    if isinstance(scope, list) and all(isinstance(word, str) for word in scope):
        own["scope"] = " ".join(scope)
    return own, spelled


def check(own: Mapping[str, Any], problem: Problem) -> None:
    """Record what is of the right type, but of no use."""
    for key in _ADDRESSES:
        text = own.get(key, "")
        insecure = key == "client_metadata_url" and not text.lower().startswith("https:")
        if text and (insecure or not is_address(text, "http")):
            problem(key, "is not an address", "it begins with https://")
    machine = own.get("grant") == "client_credentials"
    if machine and not (own.get("client_id") and (own.get("client_secret") or own.get("private_key"))):
        problem("grant", "a client that logs in for itself has to be known", 'give "client_id" and "client_secret"')
    if machine and own.get("login") == "user":
        problem("login", "a client that logs in for itself has no user", 'leave "login" or "grant" out')
    if (own.get("client_secret") or own.get("private_key")) and not own.get("client_id"):
        problem("client_id", "a secret is of a client", 'give "client_id", too')
