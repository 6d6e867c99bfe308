"""The digest of a launch."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from supervisor.config import OAuthConfig, ServerConfig, launch_digest
from supervisor.config.entry import SandboxConfig

KEY = b"k" * 32
SERVER = ServerConfig(
    name="a", command="c", args=("x", "y"), env={"T": "1", "U": "2"}, cwd="/w", headers={"H": "h"}, url="u"
)


OAUTH = OAuthConfig(client_id="x", scope="read")


def digest(**changes: Any) -> str:
    return launch_digest(msgspec.structs.replace(SERVER, **changes), {"PATH": "/bin"}, key=KEY)


@pytest.mark.parametrize(
    "changes",
    [
        {"command": "d"},
        {"args": ("xy",)},
        {"args": ("y", "x")},
        {"env": {"T": "1", "U": "3"}},
        {"env": {"T": "1"}},
        {"env": {"T": "2", "U": "1"}},
        {"env": {"T": "1", "U": "2", "PATH": "/x"}},
        {"cwd": "/v"},
        {"cwd": None},
        {"url": "v"},
        {"headers": {"H": "i"}},
        {"kind": "sse"},
        {"roots": ("file:///a",)},
        {"era": "legacy"},
        {"ask": "none"},
        {"sandbox": SandboxConfig(kind="bubblewrap")},
    ],
)
def test_whatever_the_process_can_see_changes_the_digest(changes: dict[str, Any]) -> None:
    assert digest(**changes) != digest()


@pytest.mark.parametrize(
    ("server", "before"),
    [
        (
            ServerConfig(name="a", command="c", args=("x", "y"), env={"T": "1", "U": "2"}, cwd="/w"),
            "243158d8a83a4c82e8fb839b220aebb6f926f81edb13cb26eaa3025f7192627b",
        ),
        (
            ServerConfig(name="b", kind="http", url="https://b.example/mcp", headers={"H": "h"}),
            "612344b5867b3dc0722fdad758e4cbcf553e84fb2da4c1e5c33e512122f51518",
        ),
        (
            ServerConfig(name="c", kind="http", url="https://c.example/mcp", oauth=OAUTH),
            "073b06c9dfb903d7f52e42ee1197cdbbc1576f20a0ff50fa1a3c0233c6216541",
        ),
    ],
)
def test_an_update_of_the_daemon_keeps_what_is_known_of_every_server(server: ServerConfig, before: str) -> None:
    """The digests are those of commit f18ad0e, the first that kept catalogues, and with a client of d9ab234."""
    assert launch_digest(server, {}, key=KEY) == before


def test_whose_login_it_uses_is_told_by_the_owner_alone() -> None:
    each = msgspec.structs.replace(SERVER, oauth=OAuthConfig(login="user"))
    of = {owner: launch_digest(each, {}, key=KEY, owner=owner) for owner in ("", "ana", "ben")}
    assert len(set(of.values())) == 3
    assert of[""] == launch_digest(SERVER, {}, key=KEY)


def test_settings_of_ours_and_the_order_of_variables_do_not_change_it() -> None:
    assert digest(name="b", idle_timeout_s=1.0, env={"U": "2", "T": "1"}) == digest()


def test_the_inherited_environment_counts_where_the_server_does_not_set_it() -> None:
    assert launch_digest(SERVER, {"T": "other"}, key=KEY) == launch_digest(SERVER, {}, key=KEY)
    assert launch_digest(SERVER, {"PATH": "/x"}, key=KEY) != launch_digest(SERVER, {}, key=KEY)


def test_another_key_gives_another_digest_of_64_hexadecimal_digits() -> None:
    other = launch_digest(SERVER, {"PATH": "/bin"}, key=b"o" * 32)
    assert other != digest()
    assert len(bytes.fromhex(other)) == 32


def test_values_that_are_not_utf_8_are_accepted() -> None:
    assert digest(env={"T": "\udcff"}) != digest(env={"T": "\udcfe"})


@pytest.mark.parametrize("size", [0, 15, 65])
def test_a_key_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="16 to 64 bytes"):
        launch_digest(SERVER, {}, key=b"k" * size)
