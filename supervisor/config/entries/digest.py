"""The digest of a launch: equal launches may share one process, different ones never do.

Rules of this file:
- Everything of the configuration that the started process can see goes in: program, arguments, directory, environment,
  address, headers, as whom we log in, what it is told that it may ask. What it inherits from us as it happens to be
  (`passed`: a display, a socket of an agent) stays out. Settings of ours (timeouts, limits) stay out: changing them
  needs no new process.
- What came after the first version of this file goes in only where it is not its default: else an update of the daemon
  would give every launch another digest, and what is known of every server would be lost.
- The digest is keyed, so that it may be shown or stored: without the key, guesses of a secret cannot be tried
  against it. The key stays in the data directory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import msgspec

from supervisor.config.entries.entry import ServerConfig
from supervisor.config.entries.oauth import OAuthConfig

MIN_KEY_BYTES = 16
"""A shorter key could be guessed."""

MAX_KEY_BYTES = 64
"""The most that BLAKE2b takes (RFC 7693)."""


def launch_digest(server: ServerConfig, environ: Mapping[str, str], *, key: bytes, owner: str = "") -> str:
    """Return 64 hexadecimal digits for the process that `server` would be started as.

    `environ` is the environment that the process inherits, already reduced to what is passed on; `server.env` goes
    over it. `owner`: whose secret is in it, or whose login it uses, so that nobody shares it, not even who gives an
    equal one. `key` has 16 to 64 bytes; `ValueError` otherwise.
    """
    if not MIN_KEY_BYTES <= len(key) <= MAX_KEY_BYTES:
        raise ValueError(f"the key must have {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes")
    configured = {name: value for name, value in server.env.items() if name not in server.passed}
    environment = {**environ, **configured}
    login = _login(server.oauth)
    later: dict[str, object] = {} if login == _login(OAuthConfig()) else {"oauth": login}
    if server.roots:
        later["roots"] = server.roots
    if server.era != "auto":
        later["era"] = (server.era,)
    if server.ask != "clients":
        later["ask"] = server.ask
    if server.sandbox.kind != "none":
        later["sandbox"] = msgspec.to_builtins(server.sandbox)
    if owner:
        later["owner"] = owner
    # JSON with sorted keys: no two launches give the same text. Its \u escapes take values that are not UTF-8, too.
    launch = json.dumps(
        {
            "kind": server.kind,
            "command": server.command,
            "args": server.args,
            "cwd": server.cwd,
            "env": environment,
            "url": server.url,
            "headers": dict(server.headers),
            **later,
        },
        sort_keys=True,
    )
    return hashlib.blake2b(launch.encode(), key=key, digest_size=32, person=b"mcp-launch").hexdigest()


def _login(oauth: OAuthConfig) -> dict[str, object]:
    """Return as whom we log in, but for the user: who that is the owner says."""
    return {name: value for name, value in msgspec.to_builtins(oauth).items() if name != "login"}
