"""The clients, a row each: where it keeps its servers, and what the keys mean that it writes. Pure.

Sources are their documentation (`source`) and source up to November 2026. Each of the `facts` has its own; the client
was run only where that is a version. Everything that reads an entry of a client works by these rows: `run` and `check`,
`import`, and the reference. So no key that a client documents can refuse an entry: it has a meaning here, or it is
named as one that has none.

`type` is always written where a client knows it: an address alone means HTTP+SSE to some, an error to others.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

from msgspec.structs import replace

from supervisor.config.clients import (
    MS,
    PROGRAM,
    REMOTE,
    TYPE,
    URL,
    USUAL,
    ClientKey,
    ClientProgram,
    Fact,
    Facts,
    Limit,
    label,
    logins,
    ours,
    timeout,
    unused,
)

_CALLBACK: Final = "The browser comes back to the daemon's own address, or to `redirect_uri`."
_METADATA: Final = "The daemon finds out by itself how to log in."
_TOKENS: Final = "Tokens belong to whoever got them: log in again with `mcpvisor login`."
_GOOGLE: Final = "The daemon has no credentials of Google: put a token into `headers`."

_GEMINI: Final = (
    *USUAL,
    *ours("cwd", "description"),
    ClientKey("httpUrl", "renamed", "url"),
    timeout(MS),
    *label("The client decides what it asks. As a word it is ours.", "trust"),
    ClientKey("includeTools", "allow"),
    ClientKey("excludeTools", "deny"),
    *ours("oauth", "oauth.enabled"),
    *logins("clientId", "clientSecret", "redirectUri", "scopes"),
    *unused(_METADATA, "oauth.authorizationUrl", "oauth.tokenUrl", "oauth.registrationUrl"),
    *ours("oauth.issuer"),
    *unused("Not asked for.", "oauth.audiences"),
    *unused("Tokens are sent in a header.", "oauth.tokenParamName"),
    *unused(_GOOGLE, "authProviderType", "targetAudience", "targetServiceAccount"),
    *unused('A WebSocket is `"type": "ws"` with a `url`.', "tcp"),
    *label("Which extension brought the entry.", "extension", "extensionName"),
)

_VSCODE_SOURCE: Final = "https://github.com/microsoft/vscode/blob/main"
_QWEN_SOURCE: Final = "https://github.com/QwenLM/qwen-code/blob/main/packages/core/src/tools"

_VSCODE: Final = ClientProgram(
    name="vscode",
    title="VS Code",
    signs=("SUPPORT/Code/", "~/.vscode/", "code"),
    files=("SUPPORT/Code/User/mcp.json",),
    project=(".vscode/mcp.json",),
    servers=("servers",),
    remote={"type": "http", "url": URL},
    variables="${env:X}",
    command="""code --add-mcp '{{"name": "{name}", "type": "http", "url": "{url}"}}'""",
    applied="It reads the file by itself.",
    then="It asks whether you trust the server when it starts it. Profiles have files of their own.",
    facts=Facts(
        # With models that can search; with others it groups tools.
        searches=Fact("always", "https://github.com/microsoft/vscode-docs/pull/9695"),
        limit=Fact(
            Limit(128, "grouped"),
            f"{_VSCODE_SOURCE}/extensions/copilot/src/extension/tools/common/virtualTools/virtualToolsConstants.ts",
        ),
    ),
    source="https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
    keys=(
        *USUAL,  # a variable that is null is taken out of the environment
        *ours("cwd", "envFile", "oauth"),
        *logins("clientId"),
        *unused("Not applied: a sandbox of ours is `sandbox`.", "sandboxEnabled"),
        *label("Development mode belongs to the editor.", "dev"),
        *label("Where the entry was installed from.", "gallery"),
        *label("The version that was installed.", "version"),
    ),
)

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
        applied="Start a new session, and look with /mcp.",
        then="What .mcp.json of a project has must be approved there.",
        rules="mcp__SERVER__TOOL in permissions",
        facts=Facts(
            searches=Fact("always", "2.1.332"),
            heeds_hint=Fact(True, "2.1.332"),
            keeps_loaded=Fact({"alwaysLoad": True}, "2.1.332"),
            side_by_side=Fact("read-only", "2.1.332"),
            heeds_changes=Fact(True, "https://github.com/anthropics/claude-code/issues/66084"),
        ),
        source="https://code.claude.com/docs/en/mcp",
        keys=(
            *USUAL,
            timeout(MS),
            *unused("Not applied: the daemon runs no program for headers.", "headersHelper"),
            *unused("All tools are found by search; `/mcp/all` lists them.", "alwaysLoad"),
            *ours("oauth"),
            *logins("clientId", "scopes"),
            *unused(_CALLBACK, "oauth.callbackPort"),
            *unused(_METADATA, "oauth.authServerMetadataUrl"),
        ),
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
        applied="Quit it whole, not only its window, and start it again: it reads the file when it starts.",
        source="https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        keys=PROGRAM,
    ),
    ClientProgram(
        name="cursor",
        title="Cursor",
        signs=("~/.cursor/", "cursor"),
        files=("~/.cursor/mcp.json",),
        project=(".cursor/mcp.json",),
        remote={"type": "http", "url": URL},
        variables="${env:X}",
        applied="It reads the file by itself.",
        then="The server is switched on in Settings, MCP.",
        rules="SERVER:TOOL in its allowlist",
        facts=Facts(searches=Fact("always", "https://cursor.com/blog/dynamic-context-discovery")),
        source="https://cursor.com/docs/context/mcp",
        keys=(
            *USUAL,
            *ours("envFile"),
            *unused("Not applied: a client of yours is `client_id` of `oauth`.", "auth"),
        ),
    ),
    _VSCODE,
    replace(
        _VSCODE,
        name="vscode-insiders",
        title="VS Code Insiders",
        signs=("SUPPORT/Code - Insiders/", "code-insiders"),
        files=("SUPPORT/Code - Insiders/User/mcp.json",),
        project=(),
        command="",
    ),
    ClientProgram(
        name="windsurf",
        title="Windsurf",
        signs=("~/.codeium/windsurf/", "windsurf"),
        files=("~/.codeium/windsurf/mcp_config.json",),
        remote={"serverUrl": URL},
        variables="${env:X}",
        applied="Press Refresh in its list of MCP servers.",
        facts=Facts(limit=Fact(Limit(100, "left out"), "https://docs.windsurf.com/windsurf/cascade/mcp")),
        source="https://docs.windsurf.com/windsurf/cascade/mcp",
        keys=(
            *PROGRAM,
            *REMOTE,
            *ours("disabled"),
            ClientKey("serverUrl", "renamed", "url"),
            ClientKey("disabledTools", "deny"),
        ),
    ),
    ClientProgram(
        name="devin",
        title="Devin Local",
        signs=("UNIX/.config/devin/", "ROAMING/devin/", "devin"),
        files=("ROAMING/devin/mcp_config.json", "UNIX/.config/devin/mcp_config.json"),
        project=(".devin/mcp_config.json",),
        remote={"serverUrl": URL},
        variables="${env:X}",
        source="https://docs.devin.ai/work-with-devin/mcp",
        keys=(
            *PROGRAM,
            *REMOTE,
            ClientKey("transport", "renamed", "type"),
            ClientKey("serverUrl", "renamed", "url"),
            ClientKey("disabledTools", "deny"),
        ),
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
        applied="It reads the file by itself.",
        facts=Facts(
            side_by_side=Fact("none", "https://github.com/cline/cline/pull/8331"),
            heeds_changes=Fact(True, "https://github.com/cline/cline/blob/main/src/services/mcp/McpHub.ts"),
        ),
        source="https://docs.cline.bot/mcp/configuring-mcp-servers",
        keys=(
            *USUAL,
            *ours("cwd", "disabled"),
            ClientKey("transportType", "renamed", "type"),
            ClientKey("transport", "renamed", "type"),
            timeout(1.0),
            ClientKey("autoApprove", "approve"),
            *label("Who manages the entry.", "remoteConfigured", "metadata"),
            *ours("oauth"),
            *unused(
                _TOKENS,
                "oauth.accessToken",
                "oauth.refreshToken",
                "oauth.tokens",
                "oauth.clientInformation",
                "oauth.codeVerifier",
                "oauth.lastAuthenticatedAt",
                "oauth.redirectUrl",
            ),
        ),
    ),
    ClientProgram(
        name="zed",
        title="Zed",
        signs=("UNIX/.config/zed/", "ROAMING/Zed/", "MAC/Library/Application Support/Zed/", "zed"),
        files=("ROAMING/Zed/settings.json", "UNIX/.config/zed/settings.json"),
        project=(".zed/settings.json",),
        servers=("context_servers",),
        remote={"url": URL},
        applied="It reads the file by itself.",
        rules="mcp:SERVER:TOOL in agent.tool_permissions",
        facts=Facts(
            searches=Fact(
                "never",
                "https://github.com/zed-industries/zed/blob/main/crates/agent/src/tools/context_server_registry.rs",
            ),
            heeds_changes=Fact(True, "https://zed.dev/docs/ai/mcp"),
        ),
        source="https://zed.dev/docs/ai/mcp",
        keys=(  # `env` and `timeout` may be null
            *PROGRAM,
            *REMOTE,
            timeout(1.0),
            ClientKey("enabled", "enabled"),
            *ours("oauth", "oauth.client_id", "oauth.client_secret"),
            *label("Where the entry comes from.", "source"),
            *label("On which machine the editor starts it.", "remote"),
            *unused("Not applied: they are for an extension of the editor.", "settings"),
        ),
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
        facts=Facts(
            searches=Fact("always", "0.171.0"),
            side_by_side=Fact("read-only", "https://github.com/openai/codex/pull/23750"),
            heeds_changes=Fact(False, "https://github.com/openai/codex/issues/33266"),
        ),
        source="https://developers.openai.com/codex/mcp",
        keys=(
            *PROGRAM,
            *ours("url", "cwd"),
            ClientKey("http_headers", "renamed", "headers"),
            ClientKey("env_http_headers", "variable", "headers"),
            ClientKey("bearer_token_env_var", "variable", "headers"),
            ClientKey("env_vars", "variable", "env"),
            ClientKey("enabled", "enabled"),
            ClientKey("enabled_tools", "allow"),
            ClientKey("disabled_tools", "deny"),
            timeout(1.0, "startup_timeout_sec", "start_timeout_s"),
            timeout(MS, "startup_timeout_ms", "start_timeout_s"),
            timeout(1.0, "tool_timeout_sec"),
            *ours("oauth", "oauth.client_id"),
            *unused("`scope` of `oauth` says what to ask for.", "scopes"),
            *unused("The daemon takes it from the server.", "oauth_resource", "oauth.resource"),
            *unused("Which tools need a yes is `confirm`.", "default_tools_approval_mode"),
            *unused("Not applied: put the token into `headers`.", "bearer_token"),
            *unused("Not applied: no start of the daemon waits for a server.", "required"),
            *unused("Not applied: calls run at the same time, see `max_in_flight`.", "supports_parallel_tool_calls"),
            *unused("Not applied: it runs on this machine.", "experimental_environment"),
            *label("The key of the entry is its name.", "name"),
            *unused("Settings of single tools of Codex are not applied.", "tools"),
        ),
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
        then="Where mcp.allowed is set in its settings, it has to name the server, too.",
        facts=Facts(
            side_by_side=Fact("all", "https://github.com/google-gemini/gemini-cli/pull/21933"),
            heeds_changes=Fact(True, "https://github.com/google-gemini/gemini-cli/pull/14375"),
        ),
        source="https://geminicli.com/docs/tools/mcp-server",
        keys=_GEMINI,
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
        applied="It reads the file by itself.",
        facts=Facts(
            limit=Fact(Limit(60, "warned of"), "https://github.com/RooCodeInc/Roo-Code/issues/11616"),
        ),
        source="https://docs.roocode.com/features/mcp/using-mcp-in-roo",
        keys=(
            *USUAL,
            *ours("cwd", "disabled"),
            timeout(1.0),
            ClientKey("alwaysAllow", "approve"),
            ClientKey("disabledTools", "deny"),
            *label("Nothing restarts on a changed file.", "watchPaths"),
        ),
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
        facts=Facts(
            searches=Fact("always", f"{_QWEN_SOURCE}/mcp-tool.ts"),
            heeds_hint=Fact(False, f"{_QWEN_SOURCE}/mcp-client.ts"),
            keeps_loaded=Fact({"alwaysLoadTools": True}, f"{_QWEN_SOURCE}/mcp-client.ts"),
            side_by_side=Fact("read-only", f"{_QWEN_SOURCE}/mcp-tool.ts"),
        ),
        source="https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp",
        keys=(
            *_GEMINI,
            *unused("`start_timeout_s` and `discovery_timeout_s` say how long that may take.", "discoveryTimeoutMs"),
            *unused("All tools are found by search; `/mcp/all` lists them.", "alwaysLoadTools"),
        ),
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
        rules="SERVER_TOOL in tools and permission",
        facts=Facts(
            searches=Fact("never", "https://opencode.ai/docs/mcp-servers"),
            heeds_changes=Fact(True, "https://github.com/anomalyco/opencode/pull/5913"),
        ),
        source="https://opencode.ai/docs/mcp-servers",
        keys=(
            *ours("command", "cwd", "disabled"),
            *REMOTE,
            *TYPE,
            ClientKey("environment", "renamed", "env"),
            ClientKey("enabled", "enabled"),
            timeout(MS),
            timeout(MS, "timeout.startup", "start_timeout_s"),
            timeout(MS, "timeout.request"),
            timeout(MS, "timeout.execution"),
            *unused("The lists have `discovery_timeout_s`.", "timeout.catalog"),
            *ours("oauth", "oauth.scope", "oauth.client_id", "oauth.client_secret", "oauth.redirect_uri"),
            *logins("clientId", "clientSecret", "redirectUri"),
            *unused(_CALLBACK, "oauth.callbackPort", "oauth.callback_port"),
            *label("How the client offers the tools to its model.", "codemode"),
        ),
    ),
    ClientProgram(
        name="kiro",
        title="Kiro",
        signs=("~/.kiro/", "kiro"),
        files=("~/.kiro/settings/mcp.json",),
        project=(".kiro/settings/mcp.json",),
        remote={"url": URL},
        variables="${X}",
        applied="It reads the file by itself.",
        # Unless it is switched on, by `toolSearch.enabled`.
        facts=Facts(searches=Fact("never", "https://kiro.dev/docs/cli/mcp/tool-search")),
        source="https://kiro.dev/docs/mcp/configuration",
        keys=(
            *USUAL,
            *ours("cwd", "disabled"),
            timeout(MS),
            ClientKey("autoApprove", "approve"),
            ClientKey("disabledTools", "deny"),
            *ours("oauth"),
            *logins("clientId", "redirectUri"),
            *unused("`scope` of `oauth` says what to ask for.", "oauthScopes"),
        ),
    ),
    ClientProgram(
        name="copilot",
        title="GitHub Copilot CLI",
        signs=("$COPILOT_HOME/", "~/.copilot/", "copilot"),
        files=("$COPILOT_HOME/mcp-config.json", "~/.copilot/mcp-config.json"),
        project=(".mcp.json",),
        remote={"type": "http", "url": URL, "tools": ("*",)},
        variables="$X",
        facts=Facts(
            # From about 30 on, with models that can search.
            searches=Fact("many", "https://docs.github.com/en/copilot/concepts/agents/copilot-cli/tool-search"),
            keeps_loaded=Fact(
                {"deferTools": "never"}, "https://docs.github.com/en/copilot/concepts/agents/copilot-cli/tool-search"
            ),
            heeds_changes=Fact(True, "https://github.com/github/copilot-cli/issues/3125"),
        ),
        source="https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers",
        keys=(
            *USUAL,
            *ours("cwd"),
            *ours("tools"),  # a list of those that are allowed
            ClientKey("excludeTools", "deny"),
            timeout(MS),
            *unused("Not applied: a client of yours is `client_id` of `oauth`.", "oauthClientId", "auth"),
            *unused("Not applied: see `grant` of `oauth`.", "oauthGrantType", "oauthPublicClient", "oidc"),
            *unused("Not applied: results come as the server gives them.", "filterMapping"),
            *label("How the client offers the tools to its model.", "deferTools"),
            *label("A label for people.", "displayName"),
            *label("Who manages the entry.", "isDefaultServer"),
        ),
    ),
    ClientProgram(
        name="junie",
        title="Junie",
        signs=("~/.junie/", "junie"),
        files=("~/.junie/mcp/mcp.json",),
        project=(".junie/mcp/mcp.json",),
        remote=None,
        source="https://junie.jetbrains.com/docs/junie-cli-mcp-configuration.html",
        keys=(*USUAL, ClientKey("enabled", "enabled")),
    ),
    ClientProgram(
        name="lm-studio",
        title="LM Studio",
        signs=("~/.lmstudio/",),
        files=("~/.lmstudio/mcp.json",),
        remote={"url": URL},
        source="https://lmstudio.ai/docs/app/mcp",
        keys=(*PROGRAM, *REMOTE),
    ),
    ClientProgram(
        name="warp",
        title="Warp",
        signs=("~/.warp/",),
        files=("~/.warp/.mcp.json",),
        project=(".warp/.mcp.json",),
        remote={"url": URL},
        facts=Facts(searches=Fact("always", "https://www.warp.dev/blog/mcp-search-subagent")),
        source="https://docs.warp.dev/knowledge-and-collaboration/mcp",
        keys=(
            *PROGRAM,
            *REMOTE,
            ClientKey("working_directory", "renamed", "cwd"),
            *label("A server starts when it is called.", "start_on_launch"),
        ),
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
        facts=Facts(
            searches=Fact(
                "never", "https://github.com/charmbracelet/crush/blob/main/internal/agent/tools/mcp-tools.go"
            ),
            heeds_changes=Fact(
                True, "https://github.com/charmbracelet/crush/blob/main/internal/agent/tools/mcp/init.go"
            ),
        ),
        source="https://github.com/charmbracelet/crush#mcps",
        keys=(
            *USUAL,
            *ours("disabled"),
            ClientKey("disabled_tools", "deny"),
            ClientKey("enabled_tools", "allow"),
            timeout(1.0),
        ),
    ),
    ClientProgram(
        name="amp",
        title="Amp",
        signs=("~/.config/amp/", "amp"),
        files=("$AMP_SETTINGS_FILE", "~/.config/amp/settings.jsonc", "~/.config/amp/settings.json"),
        project=(".amp/settings.jsonc", ".amp/settings.json"),
        servers=("amp.mcpServers",),
        remote={"url": URL},
        # But for the servers of a skill.
        facts=Facts(searches=Fact("never", "https://ampcode.com/news/lazy-load-mcp-with-skills")),
        source="https://ampcode.com/manual#mcp",
        keys=(*PROGRAM, *REMOTE, *ours("disabled"), ClientKey("includeTools", "allow")),
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
        applied="It reads the file by itself.",
        source="https://docs.factory.ai/cli/configuration/mcp",
        keys=(
            *USUAL,
            *ours("disabled"),
            ClientKey("disabledTools", "deny"),
            ClientKey("enabledTools", "allow"),
            timeout(MS, "timeoutMs"),
        ),
    ),
)

_OTHERS: Final = (
    ClientKey("cmd", "renamed", "command"),
    ClientKey("envs", "renamed", "env"),
    ClientKey("uri", "renamed", "url"),
    ClientKey("available_tools", "allow"),
    *label("Set `call_timeout_s` instead.", "networkTimeout"),
    *label("A label for people.", "title", "icon"),
)
"""What other programs write that `connect` and `import` do not know: people copy their entries all the same."""


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


def keys_by_name() -> dict[str, dict[str, ClientKey]]:
    """Return every key with what it is to each client that writes it, by the client's title; each name once."""
    found: dict[str, dict[str, ClientKey]] = {}
    for title, keys in (*((client.title, client.keys) for client in CLIENTS), ("other clients", _OTHERS)):
        for key in keys:
            found.setdefault(key.name, {})[title] = key
    return found
