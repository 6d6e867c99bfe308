"""What a daemon says of what it serves, before anybody connects: nobody learns more than at the doors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from supervisor.host.datadir import DataDir
from tests.scenario.daemon import World, world
from tests.supervisor.test_identity_of_daemon import doorway

CATALOGUE, REGISTRY = "/.well-known/ai-catalog.json", "/v0.1/servers"
SECRET = "hunter22hunter22"
SERVERS: dict[str, Any] = {
    "search": {"command": "/opt/secret/search", "args": ["--key", SECRET], "env": {"KEY": SECRET}},
    "vault": {"command": "x", "users": ["ana"], "description": "canary of ana"},
    "clock": {"command": "x", "description": "what time it is"},
    "off": {"command": "x", "disabled": True},
}


async def paths(at: World, who: str | None) -> list[str]:
    """The doors that the catalogue names, by their paths."""
    entries = (await at[who].page(CATALOGUE))["entries"]
    return [entry["url"].removeprefix(at.url).removesuffix("/server-card") for entry in entries]


async def names(at: World, who: str, **asked: Any) -> list[str]:
    rows = (await at[who].page(REGISTRY, **asked))["servers"]
    return [row["server"]["name"].removeprefix("localhost/") for row in rows]


async def test_a_card_leads_to_a_server_that_answers(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, SERVERS) as at:
        catalogue = await at.ask("GET", CATALOGUE)
        assert catalogue.headers["content-type"] == "application/ai-catalog+json"
        assert catalogue.json()["specVersion"] == "1.0"
        entries = catalogue.json()["entries"]
        assert len(entries) == 5
        for entry in entries:
            assert entry["type"] == "application/mcp-server-card+json"
            card = await at.ask("GET", entry["url"])
            assert (card.status_code, card.headers["content-type"]) == (200, entry["type"])
            (remote,) = card.json()["remotes"]
            hello: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c"}}
            answer = (await at.at(remote["url"]).rpc("initialize", **hello))["result"]
            assert answer["protocolVersion"] in remote["supportedProtocolVersions"]
            assert answer["serverInfo"]["version"] == card.json()["version"]


async def test_what_somebody_does_not_see_is_in_no_document(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, SERVERS, "ana", "ben") as at:
        own = ["/mcp", "/mcp/all"]
        assert await paths(at, None) == own
        assert await paths(at, "ana") == [*own, *(f"/mcp/servers/{name}" for name in ("clock", "search", "vault"))]
        assert await paths(at, "ben") == [*own, "/mcp/servers/clock", "/mcp/servers/search"]
        assert "mcp.servers.vault" in await names(at, "ana")
        assert "mcp.servers.vault" not in await names(at, "ben")
        for name in ("vault", "none", "off"):
            paths_of_it = (f"/mcp/servers/{name}/server-card", f"{REGISTRY}/localhost%2Fmcp.servers.{name}/versions")
            for path in paths_of_it:
                assert (await at["ben"].ask("GET", path)).status_code == 404
                assert (await at.ask("GET", path)).status_code == 401
        assert (await at.ask("GET", REGISTRY)).status_code == 401
        for path in (CATALOGUE, "/mcp/server-card", "/mcp/all/server-card"):
            assert (await at.ask("GET", path)).status_code == 200
            assert (await at["wrong"].ask("GET", path)).status_code == 401
        card = await at["ben"].page("/mcp/servers/clock/server-card")
        assert card["description"] == "what time it is"
        assert card["remotes"][0]["headers"][0]["isRequired"]


async def test_no_document_has_what_a_server_is_started_with(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, SERVERS) as at:
        for path in (CATALOGUE, "/mcp/servers/search/server-card", REGISTRY):
            text = await at.operator.text(path)
            assert "search" in text
            assert not any(each in text for each in (SECRET, "/opt/secret", "KEY"))


async def test_a_page_of_another_origin_reads_none(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, {}) as at:
        for path in (CATALOGUE, "/mcp/server-card", REGISTRY):
            assert (await at.ask("GET", path, headers={"origin": "https://evil.example"})).status_code == 403
            assert (await at.ask("GET", path, headers={"host": "evil.example"})).status_code == 421


async def test_who_has_a_document_is_told_so_until_it_changes(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, SERVERS, "ben") as at:
        for path in (CATALOGUE, "/mcp/servers/clock/server-card", REGISTRY):
            first = await at["ben"].ask("GET", path)
            assert first.headers["cache-control"] == "private, no-cache"
            again = await at["ben"].ask("GET", path, headers={"if-none-match": first.headers["etag"]})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
            assert "content-length" not in again.headers
        had = (await at.operator.ask("GET", CATALOGUE)).headers["etag"]
        assert (await at["ben"].ask("GET", CATALOGUE, headers={"if-none-match": had})).status_code == 200
        await at.ordered("clock", "disable")
        assert (await at.operator.ask("GET", CATALOGUE, headers={"if-none-match": had})).status_code == 200
        assert "/mcp/servers/clock" not in await paths(at, "ben")


async def test_the_registry_is_read_by_pages_and_by_what_changed(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, SERVERS) as at:
        every = await names(at, "operator")
        assert every == ["mcp", "mcp.all", "mcp.servers.clock", "mcp.servers.search", "mcp.servers.vault"]
        found, cursor = [], ""
        while True:
            page = await at.operator.page(REGISTRY, limit=2, cursor=cursor)
            found += [row["server"]["name"].removeprefix("localhost/") for row in page["servers"]]
            assert page["metadata"]["count"] == len(page["servers"])
            if not (cursor := page["metadata"].get("nextCursor", "")):
                break
        assert found == every
        assert await names(at, "operator", search="CLOCK") == ["mcp.servers.clock"]
        assert await names(at, "operator", version="latest") == every
        assert await names(at, "operator", version="none") == []
        later = datetime.now(UTC) + timedelta(hours=1)
        assert await names(at, "operator", updated_since="2020-01-01T00:00:00Z") == every
        assert await names(at, "operator", updated_since=later.isoformat()) == []
        for wrong in ({"limit": 0}, {"updated_since": "yesterday"}, {"page": 2}):
            assert (await at.operator.ask("GET", REGISTRY, params=wrong)).status_code == 400
        versions = f"{REGISTRY}/localhost%2Fmcp.servers.clock/versions"
        (row,) = (await at.operator.page(versions))["servers"]
        assert await at.operator.page(f"{versions}/latest") == row
        assert await at.operator.page(f"{versions}/{row['server']['version']}") == row
        assert (await at.operator.ask("GET", f"{versions}/9.9.9")).status_code == 404
