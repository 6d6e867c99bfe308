"""Files as nine clients keep them on Linux, written by hand: comments, foreign keys, other servers, odd layouts."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a client below a home, and what is to be taken over from it by name."""

    client: str
    path: str
    text: str
    servers: tuple[str, ...]

    def write(self, home: Path) -> Path:
        file = home / self.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(self.text.encode())
        return file


CLAUDE_CODE = Sample(
    client="claude-code",
    path=".claude.json",
    servers=("github", "sentry"),
    text="""\
{
  "numStartups": 212,
  "oauthAccount": {"accountUuid": "canary-account", "emailAddress": "canary@example.com"},
  "mcpServers": {
    "github": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-github@2025.4.8"],
      "env": {
        "GITHUB_PERSONAL_ACCESS_TOKEN": "canary-github-token"
      }
    },
    "sentry": {
      "type": "http",
      "url": "https://mcp.sentry.dev/mcp",
      "headers": {"Authorization": "Bearer ${SENTRY_TOKEN:-none}"}
    }
  },
  "projects": {
    "/home/me/other": {"mcpServers": {"local": {"command": "local-server"}}, "history": []}
  },
  "primaryApiKey": "canary-api-key"
}
""",
)

CLAUDE_DESKTOP = Sample(
    client="claude-desktop",
    path=".config/Claude/claude_desktop_config.json",
    servers=("filesystem",),
    text="""\
{
\t"globalShortcut": "Ctrl+Space",
\t"mcpServers": {
\t\t"filesystem": {
\t\t\t"command": "npx",
\t\t\t"args": [
\t\t\t\t"-y",
\t\t\t\t"@modelcontextprotocol/server-filesystem",
\t\t\t\t"/home/me/${literal}"
\t\t\t]
\t\t}
\t}
}""",
)

CURSOR = Sample(
    client="cursor",
    path=".cursor/mcp.json",
    servers=("github", "linear"),
    text="""\
{
  "mcpServers": {
    "github": {
      "command": "docker",
      "args": ["run", "-i", "--rm", "-e", "GITHUB_TOKEN", "ghcr.io/github/github-mcp-server"],
      "env": { "GITHUB_TOKEN": "${env:GITHUB_TOKEN}" }
    },
    "linear": { "url": "https://mcp.linear.app/sse?key=canary-linear-key", "auth": {"CLIENT_ID": "canary-id"} }
  }
}
""",
)

VSCODE = Sample(
    client="vscode",
    path=".config/Code/User/mcp.json",
    servers=("perplexity", "playwright"),
    text="""\
{
  // what the editor asks for
  "inputs": [
    {"type": "promptString", "id": "perplexity-key", "description": "API key", "password": true},
  ],
  "servers": {
    "perplexity": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "server-perplexity-ask"],
      "env": {"PERPLEXITY_API_KEY": "${input:perplexity-key}"},
    },
    /* the browser */
    "playwright": {
      "type": "stdio",
      "command": "npx",
      "args": ["@playwright/mcp@0.0.41"], // pinned
      "dev": {"watch": "src/**"},
    }, // no more for now
  },
}
""",
)

WINDSURF = Sample(
    client="windsurf",
    path=".codeium/windsurf/mcp_config.json",
    servers=("figma",),
    text='{"mcpServers": {"figma": {"serverUrl": "https://mcp.figma.com/mcp", "disabledTools": ["delete_file"]}}}',
)

CLINE = Sample(
    client="cline",
    path=".cline/data/settings/cline_mcp_settings.json",
    servers=("weather", "nested"),
    text="""\
{\r
  "mcpServers": {\r
    "weather": {\r
      "url": "https://weather.example.com/sse",\r
      "disabled": true,\r
      "autoApprove": ["forecast"],\r
      "timeout": 120\r
    },\r
    "nested": {\r
      "transport": {"type": "stdio", "command": "nested-server", "args": ["--fast"]},\r
      "oauth": {"accessToken": "canary-oauth"}\r
    }\r
  }\r
}\r
""",
)

ZED = Sample(
    client="zed",
    path=".config/zed/settings.json",
    servers=("postgres",),
    text="""\
// Zed settings
{
  "theme": "One Dark", // dark
  "context_servers": {
    "extension-one": {"settings": {"key": "canary-zed"}},
    "postgres": {
      "source": "custom",
      "command": {"path": "postgres-mcp", "args": ["--ro"], "env": {"PGPASSWORD": "canary-pg"}},
      "timeout": 90
    }
  },
  "vim_mode": true
}
""",
)

CODEX = Sample(
    client="codex",
    path=".codex/config.toml",
    servers=("docs", "issues"),
    text="""\
# how I like it
model = "o9" # the big one

[mcp_servers.docs]
command = "docs-server"
args = ["--root", "/srv/docs"] # all of them
startup_timeout_sec = 20
tool_timeout_sec = 90.5
enabled_tools = ["search", "read"]

[mcp_servers.docs.env]
DOCS_KEY = "canary-docs-key"

[mcp_servers.issues]
url = "https://issues.example.com/mcp"
bearer_token_env_var = "ISSUES_TOKEN"
http_headers = { "X-Team" = "canary-team" }

# how it looks
[tui]
theme = "dark"
""",
)

GEMINI = Sample(
    client="gemini",
    path=".gemini/settings.json",
    servers=("maps", "slack"),
    text="""\
\ufeff{
    "security": {"auth": {"selectedType": "oauth-personal"}},
    "mcpServers": {
        "maps": {
            "httpUrl": "https://maps.example.com/mcp",
            "headers": {"X-Goog-Api-Key": "$MAPS_KEY"},
            "timeout": 600000,
            "trust": true,
            "includeTools": ["search_places"],
            "excludeTools": ["delete_place"]
        },
        "slack": {"command": "slack-mcp", "env": {"SLACK_TOKEN": "$SLACK_TOKEN"}, "colour": "red"}
    }
}
""",
)

SAMPLES = (CLAUDE_CODE, CLAUDE_DESKTOP, CURSOR, VSCODE, WINDSURF, CLINE, ZED, CODEX, GEMINI)
