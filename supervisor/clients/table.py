"""The clients, a row each. Sources are their documentation and source up to November 2026; none was run for this.

`type` is always written where a client knows it: an address alone means HTTP+SSE to some, an error to others.
"""

from __future__ import annotations

from typing import Final

from supervisor.clients.client import URL, ClientProgram
from supervisor.clients.others import OTHERS

RESTART = "Restart it: it reads the file when it starts."

CLIENTS: Final[tuple[ClientProgram, ...]] = (
    ClientProgram(
        name="claude-code",
        title="Claude Code",
        signs=("$CLAUDE_CONFIG_DIR/", "~/.claude/", "claude"),
        files=("$CLAUDE_CONFIG_DIR/.claude.json", "~/.claude.json"),
        project=(".mcp.json",),
        local_scope=True,
        remote={"type": "http", "url": URL},
        variables="${X}",
        command="claude mcp add --transport http --scope user {name} {url}",
        rewrites=True,
        afterwards="Start a new session, and look with /mcp. What .mcp.json of a project has must be approved there.",
        rules="mcp__SERVER__TOOL in permissions",
    ),
    ClientProgram(
        name="claude-desktop",
        title="Claude Desktop",
        signs=("LOCAL/Packages/Claude_pzs8sxrjxfjjc/", "SUPPORT/Claude/"),
        files=(
            "LOCAL/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
            "SUPPORT/Claude/claude_desktop_config.json",
        ),
        remote=None,
        rewrites=True,
        afterwards="Quit it whole, not only its window, and start it again: it reads the file when it starts.",
    ),
    ClientProgram(
        name="cursor",
        title="Cursor",
        signs=("~/.cursor/", "cursor"),
        files=("~/.cursor/mcp.json",),
        project=(".cursor/mcp.json",),
        remote={"type": "http", "url": URL},
        variables="${env:X}",
        afterwards="It reads the file by itself; the server is switched on in Settings, MCP.",
        rules="SERVER:TOOL in its allowlist",
    ),
    ClientProgram(
        name="vscode",
        title="VS Code",
        signs=("SUPPORT/Code/", "~/.vscode/", "code"),
        files=("SUPPORT/Code/User/mcp.json",),
        project=(".vscode/mcp.json",),
        servers=("servers",),
        remote={"type": "http", "url": URL},
        variables="${env:X}",
        command="""code --add-mcp '{{"name": "{name}", "type": "http", "url": "{url}"}}'""",
        afterwards="It asks whether you trust the server when it starts it. Profiles have files of their own.",
    ),
    ClientProgram(
        name="vscode-insiders",
        title="VS Code Insiders",
        signs=("SUPPORT/Code - Insiders/", "code-insiders"),
        files=("SUPPORT/Code - Insiders/User/mcp.json",),
        servers=("servers",),
        remote={"type": "http", "url": URL},
        variables="${env:X}",
        afterwards="It asks whether you trust the server when it starts it. Profiles have files of their own.",
    ),
    ClientProgram(
        name="windsurf",
        title="Windsurf",
        signs=("~/.codeium/windsurf/", "windsurf"),
        files=("~/.codeium/windsurf/mcp_config.json",),
        remote={"serverUrl": URL},
        variables="${env:X}",
        afterwards="Press Refresh in its list of MCP servers.",
    ),
    ClientProgram(
        name="devin",
        title="Devin Local (of Windsurf)",
        signs=("UNIX/.config/devin/", "ROAMING/devin/", "devin"),
        files=("ROAMING/devin/mcp_config.json", "UNIX/.config/devin/mcp_config.json"),
        project=(".devin/mcp_config.json",),
        remote={"serverUrl": URL},
        variables="${env:X}",
        afterwards=RESTART,
    ),
    ClientProgram(
        name="cline",
        title="Cline",
        signs=("$CLINE_DIR/", "~/.cline/", "cline"),
        files=(
            "$CLINE_MCP_SETTINGS_PATH",
            "$CLINE_DATA_DIR/settings/cline_mcp_settings.json",
            "$CLINE_DIR/data/settings/cline_mcp_settings.json",
            "~/.cline/data/settings/cline_mcp_settings.json",
        ),
        remote={"type": "streamableHttp", "url": URL},
        bare_url="sse",
        variables="${env:X}",
        command="cline mcp install {name} --transport http {url} --yes",
        rewrites=True,
        afterwards="It reads the file by itself.",
    ),
    ClientProgram(
        name="zed",
        title="Zed",
        signs=("UNIX/.config/zed/", "ROAMING/Zed/", "MAC/Library/Application Support/Zed/", "zed"),
        files=("ROAMING/Zed/settings.json", "UNIX/.config/zed/settings.json"),
        project=(".zed/settings.json",),
        servers=("context_servers",),
        remote={"url": URL},
        afterwards="It reads the file by itself.",
        rules="mcp:SERVER:TOOL in agent.tool_permissions",
    ),
    ClientProgram(
        name="codex",
        title="Codex",
        signs=("$CODEX_HOME/", "~/.codex/", "codex"),
        files=("$CODEX_HOME/config.toml", "~/.codex/config.toml"),
        project=(".codex/config.toml",),
        format="toml",
        servers=("mcp_servers",),
        remote={"url": URL},
        command="codex mcp add {name} --url {url}",
        afterwards=RESTART,
    ),
    ClientProgram(
        name="gemini",
        title="Gemini CLI",
        signs=("$GEMINI_CLI_HOME/.gemini/", "~/.gemini/", "gemini"),
        files=("$GEMINI_CLI_HOME/.gemini/settings.json", "~/.gemini/settings.json"),
        project=(".gemini/settings.json",),
        remote={"type": "http", "url": URL},
        variables="$X",
        timeout_unit_s=0.001,
        command="gemini mcp add --scope user --transport http {name} {url}",
        afterwards="Restart it. Where mcp.allowed is set in its settings, it has to name the server, too.",
    ),
    *OTHERS,
)
