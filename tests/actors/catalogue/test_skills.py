"""Entries of `skills/list`: one that is not as the extension has it is left out whole, and it is said why."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from actors.catalogue.diff import compare
from actors.catalogue.lists import MAX_BYTES, MAX_FILES, Unusable, files_of, skill
from actors.catalogue.offer import MAX_DESCRIPTION, NO_RAW, Offer, Resource, decode_offer, encode_offer
from tests.fakes.skill_server import FILES, REFUNDS, entry, file

MANIFEST = f"{REFUNDS}/SKILL.md"


def read(**members: Any) -> Any:
    return skill(msgspec.Raw(json.dumps({**entry(files=FILES), **members}).encode()))


def files(*named: tuple[str, int]) -> list[Any]:
    return [file(MANIFEST, b""), *({**file(uri, b""), "size": size} for uri, size in named)]


def test_an_entry_is_read_and_stays_what_was_written() -> None:
    given = entry(files=FILES, license="MIT", **{"allowed-tools": "Bash(git add:*), refund  mail:send refund"})
    text = msgspec.Raw(json.dumps(given).encode())
    made = skill(text)
    assert (made.uri, made.name, made.description) == (MANIFEST, "refunds", "Refund a customer by the rules.")
    assert made.tools == ("Bash", "refund", "mail:send")
    assert made.definition is text
    found = files_of(made)
    assert found is not None
    assert {uri: each.size for uri, each in found.items()} == {f"{REFUNDS}/{at}": len(it) for at, it in FILES.items()}


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (["Read", "refund", 5, None], ("Read", "refund")),
        (5, ()),
        ("x" * 257, ()),
        (" ".join(map(str, range(99))), None),
    ],
)
def test_tools_are_named_as_a_text_or_a_list_and_only_a_few(said: Any, named: tuple[str, ...] | None) -> None:
    made = read(frontmatter={**entry()["frontmatter"], "allowed-tools": said})
    assert len(made.tools) <= 16
    assert named is None or made.tools == named


def test_of_a_dynamic_one_no_files_are_known() -> None:
    assert files_of(read(resources="dynamic")) is None


def test_both_limits_of_the_extension_are_borne() -> None:
    size = MAX_BYTES // (MAX_FILES - 1)
    assert files_of(read(resources=files(*((f"{REFUNDS}/{number}", size) for number in range(MAX_FILES - 1)))))
    assert len(read(frontmatter={"name": "refunds", "description": "a" * 99_999}).description) == MAX_DESCRIPTION


@pytest.mark.parametrize(
    "wrong",
    [
        {"uri": None},
        {"uri": "skill://billing/refunds"},
        {"uri": "SKILL.md"},
        {"uri": "skill://billing/refund/SKILL.md"},
        {"uri": f"skill://{'x' * 8192}/refunds/SKILL.md"},
        {"uri": "skill://bill\ning/refunds/SKILL.md"},
        {"frontmatter": {"name": "refunds"}},
        {"frontmatter": {"name": "", "description": ""}},
        {"frontmatter": None},
        {"resources": None},
        {"resources": "static"},
        {"resources": []},
        {"resources": {}},
        {"resources": [5]},
        {"resources": files()[:1] * 2},
        {"resources": [file(f"{REFUNDS}/other.md", b"")]},
        {"resources": [*files(), {"uri": f"{REFUNDS}/a", "digest": "sha256:00", "size": 1}]},
        {"resources": [*files(), {"uri": f"{REFUNDS}/a", "digest": f"sha256:{'0A' * 32}", "size": 1}]},
        {"resources": [*files(), {"uri": f"{REFUNDS}/a", "digest": f"sha256:{'00' * 32}"}]},
        {"resources": files((f"{REFUNDS}/a", -1))},
        {"resources": files((f"{REFUNDS}/a", MAX_BYTES + 1))},
        {"resources": files(*((f"{REFUNDS}/{number}", 0) for number in range(MAX_FILES)))},
        {"resources": files(("skill://billing/secrets/a", 0))},
        {"resources": files((f"{REFUNDS}/../secrets/a", 0))},
        {"resources": files((f"{REFUNDS}//a", 0))},
        {"resources": files((f"{REFUNDS}/%2e%2e/secrets/a", 0))},
        {"resources": files((f"{REFUNDS}/a/.", 0))},
        {"resources": files((f"{REFUNDS}/..\\..\\secrets", 0))},
        {"resources": files((f"{REFUNDS}/a%5C..%5Cb", 0))},
        {"resources": files((f"{REFUNDS}/a%00b", 0))},
        {"resources": files((f"{REFUNDS}/%1B%5B2Ja", 0))},
        {"resources": files((f"{REFUNDS}/a b", 0), (f"{REFUNDS}/a%20b", 0))},
        {"resources": files((f"{REFUNDS}-2/a", 0))},
        {"x-own": json.loads("[" * 200 + "]" * 200)},
        {"x-own": "x" * 1024 * 1024},
    ],
)
def test_what_is_wrong_anywhere_is_left_out(wrong: dict[str, Any]) -> None:
    with pytest.raises(Unusable) as refused:
        read(**wrong)
    assert 0 < len(str(refused.value)) < 200


def test_one_that_came_or_changed_is_a_change_of_resources_beside_that_of_its_file() -> None:
    before = Offer(resources=(Resource(uri=MANIFEST),))
    after = replace(before, skills=(read(),))
    assert compare(before, after).resources.added == (f"{MANIFEST}#skill",)
    later = replace(before, skills=(read(resources="dynamic"),))
    assert compare(after, later).resources.changed == (f"{MANIFEST}#skill",)
    assert not compare(after, after)


def test_it_is_kept_with_the_offer() -> None:
    made = read()
    (kept,) = decode_offer(encode_offer(Offer(skills=(made,)))).skills
    assert kept == made
    assert kept.definition != NO_RAW
