"""What each client writes in the entry of a server: its documented keys, their units, and what they mean here. Pure.

A row is what the client's own page says (`source`, read up to November 2026). Everything that reads an entry of a
client works by these rows: `run` and `check`, `import`, and the reference. So no key that a client documents can refuse
an entry: it has a meaning here, or it is named as one that has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

Meaning = Literal["ours", "renamed", "time", "enabled", "allow", "deny", "approve", "variable", "unused", "label"]
"""What a key is here.

`ours`: our key of that name. `renamed`: our key `to`. `time`: our key `to`, from another unit. `enabled`: the opposite
of `disabled`. `allow`, `deny`: of `tools`. `approve`: added to `confirm_except`. `variable`: names variables that `to`
gets its values from. `unused`: without effect, which is noted. `label`: without effect, and nobody misses one.
"""


class ClientKey(msgspec.Struct, frozen=True):
    """One key. A dot leads into an object: `oauth.clientId`. `unit_s`: the unit of a time, in seconds."""

    name: str
    meaning: Meaning = "ours"
    to: str = ""
    unit_s: float = 1.0
    why: str = ""
    """What is lost, or what does the same here; of `unused` and `label`."""


class ClientKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of one client."""

    title: str
    source: str
    keys: tuple[ClientKey, ...]

    def find(self, name: str) -> ClientKey | None:
        return next((key for key in self.keys if key.name == name), None)


MS: Final = 0.001


def _ours(*names: str) -> tuple[ClientKey, ...]:
    return tuple(ClientKey(name) for name in names)


def _unused(why: str, *names: str) -> tuple[ClientKey, ...]:
    return tuple(ClientKey(name, "unused", why=why) for name in names)


def _label(why: str, *names: str) -> tuple[ClientKey, ...]:
    return tuple(ClientKey(name, "label", why=why) for name in names)


def _timeout(unit_s: float, name: str = "timeout", to: str = "call_timeout_s") -> ClientKey:
    return ClientKey(name, "time", to, unit_s)


def _logins(*names: str) -> tuple[ClientKey, ...]:
    """Return the keys of `oauth` that are ours in another spelling."""
    return tuple(ClientKey(f"oauth.{name}", "renamed", _LOGINS[name]) for name in names)


_LOGINS: Final = {
    "clientId": "client_id",
    "clientSecret": "client_secret",
    "redirectUri": "redirect_uri",
    "scopes": "scope",
}
_PROGRAM: Final = _ours("command", "args", "env")
_REMOTE: Final = _ours("url", "headers")
_TYPE: Final = _ours("type")
_CALLBACK: Final = "The browser comes back to the daemon's own address, or to `redirect_uri`."
_METADATA: Final = "The daemon finds out by itself how to log in."
_TOKENS: Final = "Tokens belong to whoever got them: log in again with `mcpvisor login`."
_GOOGLE: Final = "The daemon has no credentials of Google: put a token into `headers`."
_GEMINI: Final = (
    *_PROGRAM,
    *_REMOTE,
    *_TYPE,
    *_ours("cwd", "description"),
    ClientKey("httpUrl", "renamed", "url"),
    _timeout(MS),
    *_label("The client decides what it asks. As a word it is ours.", "trust"),
    ClientKey("includeTools", "allow"),
    ClientKey("excludeTools", "deny"),
    *_ours("oauth", "oauth.enabled"),
    *_logins("clientId", "clientSecret", "redirectUri", "scopes"),
    *_unused(_METADATA, "oauth.authorizationUrl", "oauth.tokenUrl", "oauth.registrationUrl"),
    *_ours("oauth.issuer"),
    *_unused("Not asked for.", "oauth.audiences"),
    *_unused("Tokens are sent in a header.", "oauth.tokenParamName"),
    *_unused(_GOOGLE, "authProviderType", "targetAudience", "targetServiceAccount"),
    *_unused('A WebSocket is `"type": "ws"` with a `url`.', "tcp"),
    *_label("Which extension brought the entry.", "extension", "extensionName"),
)
_VSCODE: Final = ClientKeys(
    title="VS Code",
    source="https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
    keys=(
        *_PROGRAM,  # a variable that is null is taken out of the environment
        *_REMOTE,
        *_TYPE,
        *_ours("cwd", "envFile", "oauth"),
        *_logins("clientId"),
        *_unused("Not applied: a sandbox of ours is `sandbox`.", "sandboxEnabled"),
        *_label("Development mode belongs to the editor.", "dev"),
        *_label("Where the entry was installed from.", "gallery"),
        *_label("The version that was installed.", "version"),
    ),
)

KEYS: Final[Mapping[str, ClientKeys]] = {
    "claude-code": ClientKeys(
        title="Claude Code",
        source="https://code.claude.com/docs/en/mcp",
        keys=(
            *_PROGRAM,
            *_REMOTE,
            *_TYPE,
            _timeout(MS),
            *_unused("Not applied: the daemon runs no program for headers.", "headersHelper"),
            *_unused("All tools are found by search; `/mcp/all` lists them.", "alwaysLoad"),
            *_ours("oauth"),
            *_logins("clientId", "scopes"),
            *_unused(_CALLBACK, "oauth.callbackPort"),
            *_unused(_METADATA, "oauth.authServerMetadataUrl"),
        ),
    ),
    "claude-desktop": ClientKeys(
        title="Claude Desktop",
        source="https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        keys=_PROGRAM,
    ),
    "cursor": ClientKeys(
        title="Cursor",
        source="https://cursor.com/docs/context/mcp",
        keys=(
            *_PROGRAM,
            *_REMOTE,
            *_TYPE,
            *_ours("envFile"),
            *_unused("Not applied: a client of yours is `client_id` of `oauth`.", "auth"),
        ),
    ),
    "vscode": _VSCODE,
    "vscode-insiders": _VSCODE,
    "windsurf": ClientKeys(
        title="Windsurf",
        source="https://docs.windsurf.com/windsurf/cascade/mcp",
        keys=(
            *_PROGRAM,
            *_REMOTE,
            *_ours("disabled"),
            ClientKey("serverUrl", "renamed", "url"),
            ClientKey("disabledTools", "deny"),
        ),
    ),
    "devin": ClientKeys(
        title="Devin Local",
        source="https://docs.devin.ai/work-with-devin/mcp",
        keys=(
            *_PROGRAM,
            *_REMOTE,
            ClientKey("transport", "renamed", "type"),
            ClientKey("serverUrl", "renamed", "url"),
            ClientKey("disabledTools", "deny"),
        ),
    ),
    "cline": ClientKeys(
        title="Cline",
        source="https://docs.cline.bot/mcp/configuring-mcp-servers",
        keys=(
            *_PROGRAM,
            *_REMOTE,
            *_TYPE,
            *_ours("cwd", "disabled"),
            ClientKey("transportType", "renamed", "type"),
            ClientKey("transport", "renamed", "type"),
            _timeout(1.0),
            ClientKey("autoApprove", "approve"),
            *_label("Who manages the entry.", "remoteConfigured", "metadata"),
            *_ours("oauth"),
            *_unused(
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
    "zed": ClientKeys(
        title="Zed",
        source="https://zed.dev/docs/ai/mcp",
        keys=(  # `env` and `timeout` may be null
            *_PROGRAM,
            *_REMOTE,
            _timeout(1.0),
            ClientKey("enabled", "enabled"),
            *_ours("oauth", "oauth.client_id", "oauth.client_secret"),
            *_label("Where the entry comes from.", "source"),
            *_label("On which machine the editor starts it.", "remote"),
            *_unused("Not applied: they are for an extension of the editor.", "settings"),
        ),
    ),
    "codex": ClientKeys(
        title="Codex",
        source="https://developers.openai.com/codex/mcp",
        keys=(
            *_PROGRAM,
            *_ours("url", "cwd"),
            ClientKey("http_headers", "renamed", "headers"),
            ClientKey("env_http_headers", "variable", "headers"),
            ClientKey("bearer_token_env_var", "variable", "headers"),
            ClientKey("env_vars", "variable", "env"),
            ClientKey("enabled", "enabled"),
            ClientKey("enabled_tools", "allow"),
            ClientKey("disabled_tools", "deny"),
            _timeout(1.0, "startup_timeout_sec", "start_timeout_s"),
            _timeout(MS, "startup_timeout_ms", "start_timeout_s"),
            _timeout(1.0, "tool_timeout_sec"),
            *_ours("oauth", "oauth.client_id"),
            *_unused("`scope` of `oauth` says what to ask for.", "scopes"),
            *_unused("The daemon takes it from the server.", "oauth_resource", "oauth.resource"),
            *_unused("Which tools need a yes is `confirm`.", "default_tools_approval_mode"),
            *_unused("Not applied: put the token into `headers`.", "bearer_token"),
            *_unused("Not applied: no start of the daemon waits for a server.", "required"),
            *_unused("Not applied: calls run at the same time, see `max_in_flight`.", "supports_parallel_tool_calls"),
            *_unused("Not applied: it runs on this machine.", "experimental_environment"),
            *_label("The key of the entry is its name.", "name"),
            *_unused("Settings of single tools of Codex are not applied.", "tools"),
        ),
    ),
    "gemini": ClientKeys(
        title="Gemini CLI",
        source="https://geminicli.com/docs/tools/mcp-server",
        keys=_GEMINI,
    ),
    "roo": ClientKeys(
        title="Roo Code",
        source="https://docs.roocode.com/features/mcp/using-mcp-in-roo",
        keys=(
            *_PROGRAM,
            *_REMOTE,
            *_TYPE,
            *_ours("cwd", "disabled"),
            _timeout(1.0),
            ClientKey("alwaysAllow", "approve"),
            ClientKey("disabledTools", "deny"),
            *_label("Nothing restarts on a changed file.", "watchPaths"),
        ),
    ),
    "qwen": ClientKeys(
        title="Qwen Code",
        source="https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp",
        keys=(
            *_GEMINI,
            *_unused("`start_timeout_s` and `discovery_timeout_s` say how long that may take.", "discoveryTimeoutMs"),
        ),
    ),
    "opencode": ClientKeys(
        title="opencode",
        source="https://opencode.ai/docs/mcp-servers",
        keys=(
            *_ours("command", "cwd", "disabled"),
            *_REMOTE,
            *_TYPE,
            ClientKey("environment", "renamed", "env"),
            ClientKey("enabled", "enabled"),
            _timeout(MS),
            _timeout(MS, "timeout.startup", "start_timeout_s"),
            _timeout(MS, "timeout.request"),
            _timeout(MS, "timeout.execution"),
            *_unused("The lists have `discovery_timeout_s`.", "timeout.catalog"),
            *_ours("oauth", "oauth.scope", "oauth.client_id", "oauth.client_secret", "oauth.redirect_uri"),
            *_logins("clientId", "clientSecret", "redirectUri"),
            *_unused(_CALLBACK, "oauth.callbackPort", "oauth.callback_port"),
            *_label("How the client offers the tools to its model.", "codemode"),
        ),
    ),
    "kiro": ClientKeys(
        title="Kiro",
        source="https://kiro.dev/docs/mcp/configuration",
        keys=(
            *_PROGRAM,
            *_REMOTE,
            *_TYPE,
            *_ours("cwd", "disabled"),
            _timeout(MS),
            ClientKey("autoApprove", "approve"),
            ClientKey("disabledTools", "deny"),
            *_ours("oauth"),
            *_logins("clientId", "redirectUri"),
            *_unused("`scope` of `oauth` says what to ask for.", "oauthScopes"),
        ),
    ),
    "copilot": ClientKeys(
        title="GitHub Copilot CLI",
        source="https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers",
        keys=(
            *_PROGRAM,
            *_REMOTE,
            *_TYPE,
            *_ours("cwd"),
            *_ours("tools"),  # a list of those that are allowed
            ClientKey("excludeTools", "deny"),
            _timeout(MS),
            *_unused("Not applied: a client of yours is `client_id` of `oauth`.", "oauthClientId", "auth"),
            *_unused("Not applied: see `grant` of `oauth`.", "oauthGrantType", "oauthPublicClient", "oidc"),
            *_unused("Not applied: results come as the server gives them.", "filterMapping"),
            *_label("How the client offers the tools to its model.", "deferTools"),
            *_label("A label for people.", "displayName"),
            *_label("Who manages the entry.", "isDefaultServer"),
        ),
    ),
    "junie": ClientKeys(
        title="Junie",
        source="https://junie.jetbrains.com/docs/junie-cli-mcp-configuration.html",
        keys=(*_PROGRAM, *_REMOTE, *_TYPE, ClientKey("enabled", "enabled")),
    ),
    "lm-studio": ClientKeys(
        title="LM Studio",
        source="https://lmstudio.ai/docs/app/mcp",
        keys=(*_PROGRAM, *_REMOTE),
    ),
    "warp": ClientKeys(
        title="Warp",
        source="https://docs.warp.dev/knowledge-and-collaboration/mcp",
        keys=(
            *_PROGRAM,
            *_REMOTE,
            ClientKey("working_directory", "renamed", "cwd"),
            *_label("A server starts when it is called.", "start_on_launch"),
        ),
    ),
    "crush": ClientKeys(
        title="Crush",
        source="https://github.com/charmbracelet/crush#mcps",
        keys=(
            *_PROGRAM,
            *_REMOTE,
            *_TYPE,
            *_ours("disabled"),
            ClientKey("disabled_tools", "deny"),
            ClientKey("enabled_tools", "allow"),
            _timeout(1.0),
        ),
    ),
    "amp": ClientKeys(
        title="Amp",
        source="https://ampcode.com/manual#mcp",
        keys=(*_PROGRAM, *_REMOTE, *_ours("disabled"), ClientKey("includeTools", "allow")),
    ),
    "droid": ClientKeys(
        title="Factory droid",
        source="https://docs.factory.ai/cli/configuration/mcp",
        keys=(
            *_PROGRAM,
            *_REMOTE,
            *_TYPE,
            *_ours("disabled"),
            ClientKey("disabledTools", "deny"),
            ClientKey("enabledTools", "allow"),
            _timeout(MS, "timeoutMs"),
        ),
    ),
    # Programs that `connect` and `import` do not know, whose entries people copy all the same.
    "others": ClientKeys(
        title="other clients",
        source="https://modelcontextprotocol.io/clients",
        keys=(
            ClientKey("cmd", "renamed", "command"),
            ClientKey("envs", "renamed", "env"),
            ClientKey("uri", "renamed", "url"),
            ClientKey("available_tools", "allow"),
            *_label("Set `call_timeout_s` instead.", "networkTimeout"),
            *_label("A label for people.", "title", "icon"),
        ),
    ),
}


def keys_by_name() -> dict[str, dict[str, ClientKey]]:
    """Return every key with what it is to each client that writes it, by the client's title; each name once."""
    found: dict[str, dict[str, ClientKey]] = {}
    for client, key in _all():
        found.setdefault(key.name, {})[client.title] = key
    return found


def _all() -> Iterator[tuple[ClientKeys, ClientKey]]:
    return ((client, key) for client in KEYS.values() for key in client.keys)
