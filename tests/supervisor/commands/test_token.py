"""`token`: made and shown once, listed without being shown, revoked; each refusal says what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path

from supervisor.host.datadir import DataDir
from supervisor.identity.tokens import digest_of, id_of
from tests.supervisor.commands.test_cli import ask
from tests.supervisor.test_identity_of_daemon import doorway


async def test_a_token_is_shown_once_and_then_known_by_its_id(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, {}) as at:
        made = await ask(at.url, "token", "create", "--user", "ben", "--label", "laptop")
        text = made.stdout.strip()
        digest = digest_of(text)
        assert digest is not None
        assert made.stderr == f"Token {id_of(digest)} of ben. It is not shown again.\n"
        in_json = json.loads(
            (await ask(at.url, "token", "create", "--user", "ana", "--expires", "never", "--json")).stdout
        )
        assert (in_json["user"], in_json["expires_at"]) == ("ana", None)
        listed = await ask(at.url, "token", "list")
        assert re.search(
            rf"^{id_of(digest)}  ben +- +member +- +in 8\dd +not yet +laptop$", listed.stdout, re.MULTILINE
        )
        assert re.search(r"^\w{12}  ana +- +member +- +never +not yet *$", listed.stdout, re.MULTILINE)
        assert text not in listed.stdout
        at.keys["ben"] = text
        assert (await at["ben"].send("ping")).status_code == 200
        revoked = await ask(at.url, "token", "revoke", id_of(digest))
        assert revoked.stdout == f"{id_of(digest)} of ben is revoked\n"
        assert (await at["ben"].send("ping")).status_code == 401
        assert len(json.loads((await ask(at.url, "token", "list", "--json")).stdout)) == 1


async def test_a_token_is_written_for_its_owner_alone_and_over_nothing(tmp_path: Path, data: DataDir) -> None:
    file = tmp_path / "ben.token"
    async with doorway(tmp_path, data, {}) as at:
        made = await ask(at.url, "token", "create", "--user", "ben", "--out", str(file))
        assert made.stdout == ""
        assert digest_of(file.read_text().strip()) is not None
        assert file.stat().st_mode & 0o777 == 0o600
        again = await ask(at.url, "token", "create", "--user", "ben", "--out", str(file))
        assert again.exit_code == 1
        assert "is there already" in again.stderr
        assert len((await at.operator.ask("GET", "/api/access-tokens")).json()["tokens"]) == 1


async def test_a_token_for_one_server_is_shown_as_an_address(tmp_path: Path, data: DataDir) -> None:
    file = tmp_path / "ben.url"
    create = ("token", "create", "--user", "ben", "--server")
    async with doorway(tmp_path, data) as at:
        base = at.url.rstrip("/")
        made = await ask(at.url, *create, "clock", "--label", "phone")
        address, _, token = made.stdout.strip().partition("?token=")
        assert address == f"{base}/i/clock/mcp"
        assert digest_of(token) is not None
        assert (await at.at(f"/i/clock/mcp?token={token}").send("ping")).status_code == 200
        listed = (await ask(at.url, "token", "list")).stdout
        assert re.search(r"^\w{12}  ben +- +member +clock +in 8\dd +\ds ago +phone$", listed, re.MULTILINE)
        in_json = json.loads((await ask(at.url, *create, "clock", "--json")).stdout)
        assert in_json["url"] == f"{base}/i/clock/mcp?token={in_json['token']}"
        written = await ask(at.url, *create, "clock", "--out", str(file), "--json")
        assert file.read_text().startswith(f"{base}/i/clock/mcp?token=mcpv_")
        assert "mcpv_" not in written.stdout
        refused = await ask(at.url, *create, "vault")
        assert refused.exit_code == 1
        assert "ben has no server 'vault'; mcpvisor status lists all there are" in refused.stderr
