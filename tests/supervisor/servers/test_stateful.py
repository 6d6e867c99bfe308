"""Published servers that hold something in memory are known by the names of their packages."""

from __future__ import annotations

import pytest

from actors.server import ServerSettings
from supervisor.config import ServerConfig
from supervisor.servers.deployment import HOLDS, deploy_server


def settings(command: str, *args: str, stateful: bool | str = "auto") -> ServerSettings:
    config = ServerConfig(name="s", command=command, args=args, stateful=stateful)  # type: ignore[arg-type]  # a word
    return deploy_server(config, key=bytes(32)).settings


@pytest.mark.parametrize(
    "words",
    [
        ("npx", "-y", "@playwright/mcp"),
        ("npx", "-y", "@playwright/mcp@latest", "--headless"),
        ("npx", "-y", "--package=chrome-devtools-mcp@1.2.3", "--", "start"),
        ("cmd", "/c", "npx", "-y", "@modelcontextprotocol/server-sequential-thinking"),
        ("uvx", "--from", "office-powerpoint-mcp-server[all]==2.0", "ppt_mcp_server"),
        ("uvx", "--from", "serena-agent", "serena", "start-mcp-server"),
        ("/home/me/bin/mcp-server-playwright",),
        ("docker", "run", "-i", "--rm", "mcr.microsoft.com/playwright/mcp:v1"),
        ("docker", "run", "-i", "mcp/puppeteer"),
    ],
)
def test_a_server_that_is_known_to_hold_something_is_kept_awake_for_an_hour(words: tuple[str, ...]) -> None:
    known = settings(*words)
    assert known.held in HOLDS.values()
    assert known.idle_s(holds=bool(known.held)) == 3600
    assert settings(*words, stateful=False).held == ""


@pytest.mark.parametrize(
    "words",
    [
        ("npx", "-y", "@modelcontextprotocol/server-memory"),
        ("npx", "-y", "@somebody/mcp", "--url", "http://playwright/mcp"),
        ("node", "/srv/playwright.js"),
        ("uvx", "mcp-server-git", "--repository", "/src/serena"),
        ("",),
    ],
)
def test_others_are_not(words: tuple[str, ...]) -> None:
    known = settings(*words)
    assert known.held == ""
    assert known.idle_s(holds=False) == 180
    assert settings(*words, stateful=True).held
