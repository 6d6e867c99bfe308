"""The clients, a row each. Sources are their documentation and source up to November 2026; none was run for this.

`type` is always written where a client knows it: an address alone means HTTP+SSE to some, an error to others.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

from supervisor.config.clients.client import URL, ClientProgram

RESTART: Final = "Restart it: it reads the file when it starts."

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
        command="gemini mcp add --scope user --transport http {name} {url}",
        afterwards="Restart it. Where mcp.allowed is set in its settings, it has to name the server, too.",
    ),
    ClientProgram(
        name="roo",
        title="Roo Code",
        signs=("SUPPORT/Code/User/globalStorage/rooveterinaryinc.roo-cline/",),
        files=("SUPPORT/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",),
        project=(".roo/mcp.json",),
        remote={"type": "streamable-http", "url": URL},
        variables="${env:X}",
        rewrites=True,
        afterwards="It reads the file by itself.",
    ),
    ClientProgram(
        name="qwen",
        title="Qwen Code",
        signs=("$QWEN_HOME/", "~/.qwen/", "qwen"),
        files=("$QWEN_HOME/settings.json", "~/.qwen/settings.json"),
        project=(".qwen/settings.json",),
        remote={"httpUrl": URL},
        bare_url="sse",
        variables="$X",
        command="qwen mcp add --scope user --transport http {name} {url}",
        afterwards="Restart it.",
    ),
    ClientProgram(
        name="opencode",
        title="opencode",
        signs=("CONFIG/opencode/", "opencode"),
        files=("$OPENCODE_CONFIG", "CONFIG/opencode/opencode.jsonc", "CONFIG/opencode/opencode.json"),
        project=("opencode.jsonc", "opencode.json"),
        servers=("mcp",),
        remote={"type": "remote", "url": URL},
        variables="{env:X}",
        afterwards="Restart it.",
        rules="SERVER_TOOL in tools and permission",
    ),
    ClientProgram(
        name="kiro",
        title="Kiro",
        signs=("~/.kiro/", "kiro"),
        files=("~/.kiro/settings/mcp.json",),
        project=(".kiro/settings/mcp.json",),
        remote={"url": URL},
        variables="${X}",
        afterwards="It reads the file by itself.",
    ),
    ClientProgram(
        name="copilot",
        title="GitHub Copilot CLI",
        signs=("$COPILOT_HOME/", "~/.copilot/", "copilot"),
        files=("$COPILOT_HOME/mcp-config.json", "~/.copilot/mcp-config.json"),
        project=(".mcp.json",),
        remote={"type": "http", "url": URL, "tools": ("*",)},
        variables="$X",
        afterwards="Restart it.",
    ),
    ClientProgram(
        name="junie",
        title="Junie",
        signs=("~/.junie/", "junie"),
        files=("~/.junie/mcp/mcp.json",),
        project=(".junie/mcp/mcp.json",),
        remote=None,
        afterwards="Restart it.",
    ),
    ClientProgram(
        name="lm-studio",
        title="LM Studio",
        signs=("~/.lmstudio/",),
        files=("~/.lmstudio/mcp.json",),
        remote={"url": URL},
        afterwards="Restart it.",
    ),
    ClientProgram(
        name="warp",
        title="Warp",
        signs=("~/.warp/",),
        files=("~/.warp/.mcp.json",),
        project=(".warp/.mcp.json",),
        remote={"url": URL},
        afterwards="Restart it.",
    ),
    ClientProgram(
        name="crush",
        title="Crush",
        signs=("$CRUSH_GLOBAL_CONFIG/", "CONFIG/crush/", "crush"),
        files=("$CRUSH_GLOBAL_CONFIG/crush.json", "CONFIG/crush/crush.json"),
        project=(".crush.json", "crush.json"),
        servers=("mcp",),
        remote={"type": "http", "url": URL},
        variables="$X",
        afterwards="Restart it.",
    ),
    ClientProgram(
        name="amp",
        title="Amp",
        signs=("~/.config/amp/", "amp"),
        files=("$AMP_SETTINGS_FILE", "~/.config/amp/settings.jsonc", "~/.config/amp/settings.json"),
        project=(".amp/settings.jsonc", ".amp/settings.json"),
        servers=("amp.mcpServers",),
        remote={"url": URL},
        afterwards="Restart it.",
    ),
    ClientProgram(
        name="droid",
        title="Factory droid",
        signs=("~/.factory/", "droid"),
        files=("~/.factory/mcp.json",),
        project=(".factory/mcp.json",),
        remote={"type": "http", "url": URL},
        variables="${X}",
        command="droid mcp add {name} {url} --type http",
        afterwards="It reads the file by itself.",
    ),
)


def client_of_file(path: PurePath) -> ClientProgram | None:
    """Return whose file this is, by its absolute path: the client with the longest end of it.

    A name that only one client gives a file will do by itself, as people copy such a file.
    """
    fitting = [(len(end), client) for client in CLIENTS for end in _ends(client) if path.parts[-len(end) :] == end]
    if fitting:
        return max(fitting, key=lambda each: each[0])[1]
    return _BY_FILE_NAME.get(path.name)


def _ends(client: ClientProgram) -> list[tuple[str, ...]]:
    """Return the ends of the paths of its files; those below a variable have no folder that tells them."""
    fixed = [template.partition("/")[2] for template in client.files if not template.startswith("$")]
    return [PurePath(end).parts for end in (*fixed, *client.project)]


def _names_of_one() -> dict[str, ClientProgram]:
    users: dict[str, list[ClientProgram]] = {}
    for client in CLIENTS:
        for name in {end[-1] for end in _ends(client)}:
            users.setdefault(name, []).append(client)
    return {name: clients[0] for name, clients in users.items() if len(clients) == 1}


_BY_FILE_NAME: Final[Mapping[str, ClientProgram]] = _names_of_one()
