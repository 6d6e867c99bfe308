"""What to do where a program is missing, or says that it cannot work. Pure.

Nothing is said that may be wrong for another reason: what package managers and Docker say is known by their own words.
"""

from __future__ import annotations

import re
from pathlib import PurePath

import msgspec


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """Where programs come from that servers are started with. `oldest`: versions before it start no present server.

    `asked`: the program that says the version, to these `arguments`; empty: each says it itself.
    """

    name: str
    programs: tuple[str, ...]
    install: str
    asked: str = ""
    oldest: tuple[int, ...] = ()
    arguments: tuple[str, ...] = ("--version",)


PROVIDERS = (
    Provider(
        name="Node.js",
        programs=("npx", "node", "npm"),
        asked="node",
        install="install Node.js 20 or newer: https://nodejs.org, or the package nodejs of your system",
        oldest=(18,),
    ),
    Provider(
        name="uv",
        programs=("uvx", "uv"),
        install="install uv: python -m pip install uv, or https://docs.astral.sh/uv",
    ),
    Provider(
        name="Python",
        programs=("python3", "python"),
        install="install Python 3.10 or newer: https://www.python.org, or the package python3 of your system",
        oldest=(3, 10),
    ),
    Provider(name="pipx", programs=("pipx",), install="install pipx: python -m pip install pipx"),
    Provider(
        name="Docker",
        programs=("docker",),
        install="install Docker: https://docs.docker.com/get-docker, or the package docker.io of your system",
        arguments=("version", "--format", "{{.Server.Version}}"),
    ),
    Provider(name="Podman", programs=("podman",), install="install Podman: https://podman.io"),
    Provider(name="Bun", programs=("bunx", "bun"), install="install Bun: https://bun.sh"),
    Provider(name="Deno", programs=("deno",), install="install Deno: https://deno.com"),
    Provider(name="pnpm", programs=("pnpm", "pnpx"), install="install pnpm: npm install -g pnpm"),
)
"""Those that published servers are started with; of another program nobody here knows where it comes from."""

_BY_PROGRAM = {program: provider for provider in PROVIDERS for program in provider.programs}


def provider_of(command: str) -> Provider | None:
    return _BY_PROGRAM.get(PurePath(command).name)


def how_to_install(command: str) -> str:
    """Return what to do where a program is missing; empty for one of which that is not known."""
    provider = provider_of(command)
    if provider is None:
        return ""
    program = PurePath(command).name
    comes = f"{program} comes with {provider.name}: " if program != provider.name.lower() else ""
    return f"{comes}{provider.install}"


def how_to_provide(command: str, hint: str, nearest: str | None = None) -> str:
    """Return what to do about a command that cannot be started. `hint`: how it is installed, where that is known."""
    if "/" in command:
        return hint or "correct the path, or install the program"
    meant = f'did you mean "{nearest}"? Or ' if nearest else ""
    install = hint or f"{meant}install it"
    return f"{install}, or write its absolute path; a service often has a shorter PATH than your shell"


_NODE = _BY_PROGRAM["node"].install
_CERTIFICATE = (
    "your network has a certificate of its own: set SSL_CERT_FILE and NODE_EXTRA_CA_CERTS to it in the environment of "
    "the daemon, which passes them on"
)
_NO_PROXY = "check the network; behind a proxy set HTTPS_PROXY in the environment of the daemon, which passes it on"
_SAID = (
    (
        re.compile(r"EBADENGINE|[Rr]equires? Node(?:\.js)? ?(?:version )?[v>=^]*\d|ERR_UNKNOWN_BUILTIN_MODULE"),
        f"its Node.js may be too old for it: {_NODE}",
    ),
    (
        re.compile(r"SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT)|UnknownIssuer"),
        _CERTIFICATE,
    ),
    (
        re.compile(r"^npm (?:error|ERR!).{0,200}(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT)", re.MULTILINE),
        f"npm does not reach the address that it downloads from (npm config get registry): {_NO_PROXY}",
    ),
    (
        re.compile(r"^npm (?:error|ERR!) (?:code E404|404 )|not found in the package registry", re.MULTILINE),
        "there is no such package: correct its name in args",
    ),
    (
        re.compile(r"^error: (?:Failed to fetch|Could not connect)", re.MULTILINE),
        f"uv does not reach the address that it downloads from: {_NO_PROXY}",
    ),
    (re.compile(r"ENOSPC|No space left on device"), "the disk is full: free some space"),
    (re.compile(r"[Cc]annot connect to the Docker daemon|failed to connect to the docker API"), "start Docker"),
    (
        re.compile(r"permission denied while trying to connect to the [Dd]ocker"),
        "let this user use Docker: add it to the group docker, and log in again",
    ),
)


def advice_on(text: str) -> str:
    """Return what to do about what a program wrote before it ended; empty where nothing is known of it."""
    return next((advice for pattern, advice in _SAID if pattern.search(text)), "")
