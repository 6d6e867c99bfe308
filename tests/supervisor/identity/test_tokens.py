"""TokenTable: whoever has the text comes in until it expires or is revoked, and nothing of the text is kept."""

from __future__ import annotations

import pytest

from actors.errors import InvalidArguments
from supervisor.identity import tokens as module
from supervisor.identity.tokens import USE_NOTED_S, NotKept, TokenTable, TooManyTokens, id_of, token_of
from supervisor.operations import ROLES
from supervisor.store.records import TOKENS
from tests.fakes.rows import MemoryRows


@pytest.mark.case("I10")
async def test_a_token_is_found_by_its_text_until_it_expires() -> None:
    disk = MemoryRows(TOKENS)
    tokens = TokenTable(disk)
    text, made = await tokens.make("ana", role="admin", team="core", label="laptop", expires_at=200.0, now=100.0)
    for now in (100.0, 199.9):
        found = tokens.find(text, now)
        assert found is not None
        assert (found.user, found.role, found.team, found.label) == ("ana", "admin", "core", "laptop")
    assert tokens.find(text, 200.0) is None
    assert tokens.find(token_of(1), 100.0) is None
    assert tokens.find("mcpv_", 100.0) is None
    assert text not in repr(disk.kept)
    assert [each.digest for each in tokens.all()] == [made.digest]


async def test_a_token_is_known_after_a_restart() -> None:
    disk = MemoryRows(TOKENS)
    text, _ = await TokenTable(disk).make("ana", role="member", now=100.0)
    later = TokenTable(disk)
    assert later.find(text, 300.0) is None
    later.take(disk.kept.values())
    assert later.find(text, 300.0) is not None


async def test_its_last_use_is_noted_now_and_then() -> None:
    disk = MemoryRows(TOKENS)
    tokens = TokenTable(disk)
    text, made = await tokens.make("ana", role="member", now=100.0)
    for now in (101.0, 102.0, 101.0 + USE_NOTED_S, 102.0 + USE_NOTED_S):
        assert tokens.find(text, now) is not None
    assert disk.writes == 3
    assert disk.kept[made.digest].used_at == 102.0 + USE_NOTED_S


async def test_one_that_is_revoked_is_refused_at_once_and_gone_from_the_disk() -> None:
    disk, told = MemoryRows(TOKENS), list[bytes]()
    tokens = TokenTable(disk)
    tokens.revoked = told.append
    text, made = await tokens.make("ana", role="member", now=100.0)
    other, _ = await tokens.make("ana", role="member", now=100.0)
    assert await tokens.revoke(id_of(made.digest)) == made
    assert (tokens.find(text, 101.0), told, len(disk.kept)) == (None, [made.digest], 1)
    assert tokens.find(other, 101.0) is not None
    with pytest.raises(InvalidArguments, match="no token"):
        await tokens.revoke(id_of(made.digest))


async def test_nothing_is_promised_that_is_not_on_the_disk() -> None:
    disk = MemoryRows(TOKENS)
    tokens = TokenTable(disk)
    text, made = await tokens.make("ana", role="member", now=100.0)
    disk.works = False
    with pytest.raises(NotKept, match="no token was made"):
        await tokens.make("ben", role="member", now=100.0)
    assert [each.user for each in tokens.all()] == ["ana"]
    with pytest.raises(NotKept, match="not kept as revoked"):
        await tokens.revoke(id_of(made.digest))
    assert tokens.find(text, 101.0) is None


async def test_one_that_is_revoked_while_it_is_made_in_vain_is_none() -> None:
    async def fill() -> bool:
        (made,) = tokens.all()
        disk.secure = disk.flush
        await tokens.revoke(id_of(made.digest))
        return False

    disk = MemoryRows(TOKENS)
    disk.secure = fill
    tokens = TokenTable(disk)
    with pytest.raises(NotKept, match="no token was made"):
        await tokens.make("ana", role="member", now=100.0)
    assert tokens.all() == []


async def test_so_many_are_kept_and_expired_ones_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TOKENS", 2)
    tokens = TokenTable(MemoryRows(TOKENS))
    await tokens.make("ana", role="member", expires_at=150.0, now=100.0)
    await tokens.make("ben", role="member", now=101.0)
    with pytest.raises(TooManyTokens):
        await tokens.make("cem", role="member", now=149.0)
    await tokens.make("cem", role="member", now=150.0)
    assert [each.user for each in tokens.all()] == ["ben", "cem"]


async def test_what_becomes_of_tokens_is_told_for_the_audit() -> None:
    disk, told = MemoryRows(TOKENS), list[tuple[str, str]]()
    tokens = TokenTable(disk, lambda change, token: told.append((change, token.user)))
    _, made = await tokens.make("ana", role="member", expires_at=200.0, now=100.0)
    _, other = await tokens.make("ben", role="member", now=300.0)
    assert told == [("create", "ana"), ("expire", "ana"), ("create", "ben")]
    with pytest.raises(InvalidArguments):
        await tokens.revoke(id_of(made.digest))
    disk.works = False
    with pytest.raises(NotKept):
        await tokens.revoke(id_of(other.digest))
    with pytest.raises(NotKept):
        await tokens.make("cem", role="member", now=300.0)
    assert told[3:] == [("revoke", "ben"), ("create", "cem"), ("revoke", "cem")]


async def test_a_token_for_one_server_is_none_elsewhere_and_others_are_none_there() -> None:
    tokens = TokenTable(MemoryRows(TOKENS))
    text, made = await tokens.make("ana", role="member", server="github", now=100.0)
    whole, _ = await tokens.make("ana", role="member", now=100.0)
    assert made.server == "github"
    for server, shown in (("", whole), ("github", text)):
        assert [each for each in (text, whole) if tokens.find(each, 100.0, server) is not None] == [shown]
    assert tokens.find(text, 100.0, "git") is None


async def test_whether_a_user_can_still_come_in_is_known_without_the_token() -> None:
    tokens = TokenTable(MemoryRows(TOKENS))
    assert tokens.has("ana", "", 100.0), "nobody is shut out before all are known"
    tokens.take(())
    assert not tokens.has("ana", "", 100.0)
    _, made = await tokens.make("ana", role="member", expires_at=200.0, now=100.0)
    await tokens.make("ana", role="member", team="core", now=100.0)
    await tokens.make("ben", role="member", server="desk", now=100.0)
    assert [tokens.has("ana", team, 100.0) for team in ("", "core", "other")] == [True, True, False]
    assert not tokens.has("ben", "", 100.0), "that is for one server alone"
    await tokens.make("cem", role="auditor", now=100.0)
    assert [tokens.has("cem", "", 100.0, role) for role in ROLES] == [True, True, False]
    assert not tokens.has("ana", "", 200.0)
    assert tokens.has("ana", "", 150.0)
    await tokens.revoke(id_of(made.digest))
    assert not tokens.has("ana", "", 150.0)


async def test_a_table_without_a_store_takes_no_token() -> None:
    table = TokenTable.empty()
    with pytest.raises(NotKept, match="no token was made"):
        await table.make("ana", role="member", now=0.0)
