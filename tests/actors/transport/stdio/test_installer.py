"""Which commands may install what they run, however they are wrapped."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.transport.stdio.installer import Installer, installer_of

INSTALLING = {
    "npx -y @scope/server /tmp": Installer("npx", "@scope/server"),
    "/usr/bin/npx --yes server@1.2 --port 3": Installer("npx", "server@1.2"),
    "npx -p pkg binary": Installer("npx", "pkg"),
    "npx --package=pkg -- binary": Installer("npx", "pkg"),
    "npm exec -y server": Installer("npm", "server"),
    "npm x server": Installer("npm", "server"),
    "pnpm dlx server": Installer("pnpm", "server"),
    "yarn dlx server": Installer("yarn", "server"),
    "bunx server": Installer("bunx", "server"),
    "bun x server": Installer("bun", "server"),
    "uvx mcp-server-time --local-timezone=UTC": Installer("uvx"),
    "uvx --from git+https://example.com/x server": Installer("uvx"),
    "uv run --directory /srv/x server.py": Installer("uv"),
    "uv --directory /srv/x run server.py": Installer("uv"),
    "uv tool run server": Installer("uv"),
    "pipx run server": Installer("pipx"),
    "python3.12 -m pipx run server": Installer("pipx"),
    "python -m uv run server": Installer("uv"),
    "docker run -i --rm mcp/fetch": Installer("docker"),
    "docker container run -i image": Installer("docker"),
    "podman run -i image": Installer("podman"),
    "deno run -A npm:@scope/server": Installer("deno"),
    "env A=b C=d npx server": Installer("npx", "server"),
    "/usr/bin/env -S npx server": Installer("npx", "server"),
    "A=b npx server": Installer("npx", "server"),
    "cmd /c npx -y server": Installer("npx", "server"),
    "npx.cmd -y server": Installer("npx", "server"),
    r"C:\node\npx.cmd server": Installer("npx", "server"),
    "sh -c 'npx -y server'": Installer("npx", "server"),
    "bash -lc 'cd /srv && exec npx -y server'": Installer("npx", "server"),
    "bash -c 'export A=b; uvx server'": Installer("uvx"),
    "bash -c 'cd /srv&&npx server'": Installer("npx", "server"),
}

ORDINARY = (
    "python -m mcp_server_time",
    "python server.py npx",
    "node server.js",
    "npm run start",
    "uv pip list",
    "docker exec -i box server",
    "deno run -A server.ts",
    "sh -c 'node server.js'",
    "sh script.sh npx",
    "sh -c",
    "sh -c 'npx \"'",
    "env",
    "",
    "/opt/npx/server",
)


def split(line: str) -> list[str]:
    return line.split(" ") if "\\" in line else shlex.split(line) or [""]


@pytest.mark.parametrize("line", INSTALLING)
def test_a_launcher_that_installs_is_recognised(line: str) -> None:
    command, *args = split(line)
    assert installer_of(command, args) == INSTALLING[line]


@pytest.mark.parametrize("line", ORDINARY)
def test_an_ordinary_program_is_not_taken_for_one(line: str) -> None:
    command, *args = split(line)
    assert installer_of(command, args) is None


def test_shells_in_shells_are_followed_only_so_far() -> None:
    assert installer_of("sh", ["-c", "sh -c 'npx server'"]) == Installer("npx", "server")
    words = ["env", "sh", "-c"] * 50
    assert installer_of(words[0], words[1:]) is None
    assert installer_of("sh", ["-c", "true; " * 10_000 + "npx server"]) is None


@given(st.lists(st.text(max_size=30) | st.sampled_from(["sh", "-c", "npx", "env", "exec", "cmd", "/c"]), min_size=1))
def test_no_command_is_too_odd(words: list[str]) -> None:
    installer_of(words[0], words[1:])
