"""What a newer configuration changes in a running daemon, and what of it takes effect while it runs. Pure.

A server whose entry has changed is replaced only if its actor was made of what has changed: its program or address, its
limits, what it is told. What is said of its calls, such as their deadline, is read from the newest deployment with each
of them.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from supervisor.config import ServerConfig, Settings
from supervisor.config.given import RestingServer
from supervisor.servers.deployment import DeployedServer, Deployment

LIVE: Final = frozenset(
    {
        *("call_timeout_s", "env", "pass_env", "log_level", "max_question_bytes"),
        *("discover_limit_max", "discover_token_budget", "instructions_token_budget", "first_discovery_wait_s"),
        *(
            "max_query_chars",
            "client_hints",
            "discover_structured",
            "notify_catalogue_changes",
            "list_changed_debounce_s",
            "show_debug",
            "reload_on_change",
            "reload_drain_s",
        ),
        *("identity", "profile", "profiles", "rank_by_use", "warm_up", "warm_up_unused_s"),
        *("audit_days", "audit_calls", "server_log_bytes", "server_log_files", "metrics_tools"),
        *("event_sinks", "calls_keep_arguments", "webhook_origins"),
        *("expose", "confirm", "trust", "catalogue_max_age_s"),
        *("plugins", "plugin_call_timeout_s", "plugin_discovery_timeout_s", "plugin_threads"),
        *("result_token_budget", "max_kept_result_bytes", "result_kept_s", "memory"),
    }
)
"""Settings that take effect at once: they are read from the newest deployment, or are a part of the servers' own."""

MAX_NAMES: Final = 5


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Names of servers and of the daemon's settings, sorted.

    `changed` have another entry; of these, `replaced` were made of what has changed and get a new process or session,
    and `relaunched` are started another way, so that what is known of them does not count; `resized` have other
    instances, and those that stay go on. `settings` have changed and take effect at once, those of `restart` when the
    daemon is started again.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    relaunched: tuple[str, ...] = ()
    resized: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()

    @property
    def applicable(self) -> bool:
        """Whether there is anything that can take effect now."""
        return bool(self.added or self.removed or self.changed or self.settings)

    @property
    def adjusted(self) -> tuple[str, ...]:
        """Those of the `changed` that keep their process or session."""
        return tuple(name for name in self.changed if name not in self.replaced)

    def sentence(self) -> str:
        """Return it in a sentence or two."""
        servers = {"added": self.added, "removed": self.removed, "replaced": self.replaced, "changed": self.adjusted}
        said = [f"{_count(names)} {words} ({_some(names)})" for words, names in servers.items() if names]
        if self.settings:
            said.append(f"settings changed: {', '.join(self.settings)}")
        text = "; ".join(said) or "nothing has changed"
        if self.restart:
            text += f". These take effect when the daemon is started again: {', '.join(self.restart)}"
        return text


def _count(names: tuple[str, ...]) -> str:
    return f"{len(names)} server{'s' if len(names) != 1 else ''}"


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")


def diff(old: Deployment, new: Deployment) -> Difference:
    """Return what is different in `new`. Two entries that only spell the same thing otherwise are unchanged."""
    before, after = old.server_names, new.server_names
    same = {name for name in before & after if _entry(old, name) == _entry(new, name)}
    changed = before & after - same
    running = [name for name in changed if name in old.servers and name in new.servers]
    replaced = {name for name in running if made_of(old.servers[name]) != made_of(new.servers[name])}
    others = [name for name in running if old.servers[name].instances != new.servers[name].instances]
    settings = [
        name
        for name in sorted(Settings.__struct_fields__)
        if getattr(old.settings, name) != getattr(new.settings, name)
    ]
    return Difference(
        added=_in_order(after - before),
        removed=_in_order(before - after),
        changed=_in_order(changed),
        replaced=_in_order(replaced),
        relaunched=_in_order(name for name in running if old.servers[name].digest != new.servers[name].digest),
        resized=_in_order(name for name in others if name not in replaced),
        unchanged=_in_order(same),
        settings=tuple(name for name in settings if name in LIVE),
        restart=tuple(name for name in settings if name not in LIVE),
    )


def in_force(old: Deployment, new: Deployment) -> Deployment:
    """Return the new deployment with the settings that cannot change while the daemon runs as they were."""
    kept = {name: getattr(old.settings, name) for name in Settings.__struct_fields__ if name not in LIVE}
    return replace(new, settings=replace(new.settings, **kept))


def _in_order(names: Any) -> tuple[str, ...]:
    return tuple(sorted(names))


def made_of(server: DeployedServer) -> tuple[object, ...]:
    kind, oauth = server.config.kind, server.config.oauth
    given = server.launch, server.limits, server.remote, server.remote_limits, server.settings, server.policy
    return kind, oauth, *given


def _entry(deployment: Deployment, name: str) -> tuple[ServerConfig | None, list[RestingServer]]:
    return deployment.entries.get(name), [resting for resting in deployment.resting if resting.name == name]
