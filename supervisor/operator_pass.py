"""What the commands show a daemon: the token in MCPVISOR_TOKEN, or a pass made with the key in the daemon's own files.

The pass answers a challenge, see `supervisor/identity/operator_key.py`. The key is read where daemons of this user have
theirs, and what listens at an address has no say in that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

import msgspec
import trio

from actors.errors import ConfigError
from actors.protocol.wire import json
from supervisor.host.places import VARIABLE as DATA_DIR
from supervisor.host.places import known_data_dirs
from supervisor.identity.operator_key import CHALLENGE, KEY_FILE, PROOF, endpoint, is_proof, read_key, sign_pass

VARIABLE: Final = "MCPVISOR_TOKEN"
Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


class NoPass(Exception):
    """What asks for the key of a daemon does not have that of one of this user; the text says what to do."""


class Challenge(msgspec.Struct, frozen=True):
    """What a daemon asks for, with the proof that it has the key itself."""

    text: str
    proof: str


def authorization(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the header that shows the token of the environment; none where there is none."""
    token = environ.get(VARIABLE, "").strip()
    return {"authorization": f"Bearer {token}"} if token else {}


def end_of(stream: Stream) -> str:
    """Return the other `endpoint` of a connection. Raises `OSError` if it has none any more."""
    return endpoint((stream.transport_stream if isinstance(stream, trio.SSLStream) else stream).socket.getpeername())


def challenge_in(body: bytes) -> Challenge | None:
    """Return the challenge in the body of a refusal; None if it has none."""
    text, proof = (json.text_at(body, "error", "data", name) for name in (CHALLENGE, PROOF))
    return Challenge(text, proof) if text and proof else None


def pass_for(
    challenge: Challenge, end: str, method: str, path: str, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the header that answers a challenge which came from an `endpoint`, for one request there.

    `path` is the path as it is sent, without a query. Raises `NoPass`.
    """
    places, faults = known_data_dirs(environ), list[str]()
    for place in places:
        try:
            key = read_key(place / KEY_FILE)
        except FileNotFoundError:
            continue
        except ConfigError as error:
            faults.append(str(error))
            continue
        except (OSError, ValueError) as error:  # the latter is Python's, for a path with a NUL character
            faults.append(f"{place / KEY_FILE}: {getattr(error, 'strerror', error)}")
            continue
        if is_proof(key, challenge.text, challenge.proof, end):
            return {"authorization": f"Bearer {sign_pass(key, challenge.text, end, method, path)}"}
    why = f" ({'; '.join(faults)})" if faults else ""
    raise NoPass(
        f"what listens there does not have the key of a daemon of this user{why}, and was shown nothing: give the "
        f"command as the daemon's user, on its machine and not through a forwarded port, or set {VARIABLE}; {DATA_DIR} "
        "names a data directory that is not found"
    )
