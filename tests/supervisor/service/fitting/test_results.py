"""Results for clients of every revision: what an older one cannot take is changed, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol.agreement.versions import LEGACY_VERSIONS, MODERN_VERSIONS
from supervisor.service.fitting.results import NO_DEFINITION, Shown, fit_result, may_not_fit
from tests.fakes.json_texts import OBJECTS, VALUES, arrays, members, objects, read

VERSIONS = (*LEGACY_VERSIONS, *MODERN_VERSIONS)
PROJECTED = ("2025-06-18", "2025-11-25")
TEXT: dict[str, Any] = {"type": "text", "text": "t"}
AUDIO: dict[str, Any] = {"type": "audio", "data": "", "mimeType": "a/b"}
OF_ARRAYS = msgspec.Raw(b'{"name":"t","outputSchema":{"type":"array"}}')
OF_OBJECTS = msgspec.Raw(b'{"name":"t","outputSchema":{"type":"object"}}')


def called(result: Any, version: str, definition: msgspec.Raw = NO_DEFINITION) -> Any:
    body = json.dumps(result).encode()
    return json.loads(fit_result(body, Shown("tools/call", version, definition)))


@pytest.mark.parametrize("value", [[1, 2], None, 0, "x", True])
def test_structured_content_that_is_no_object_is_put_into_one(value: Any) -> None:
    for version in PROJECTED:
        result = called({"content": [TEXT], "structuredContent": value}, version)
        assert result == {"content": [TEXT], "structuredContent": {"result": value}}
        bare = called({"structuredContent": value, "content": []}, version)
        assert bare["content"] == [{"type": "text", "text": json.dumps(value)}]
    modern = {"content": [], "structuredContent": value}
    assert called(modern, "2026-07-28") == modern


def test_only_what_stands_at_the_top_counts() -> None:
    deep = {"content": [], "structuredContent": {"structuredContent": 5}, "x": {"structuredContent": [1]}}
    beside = {"content": [], "x": {"structuredContent": 5}}
    for version in PROJECTED:
        assert called(deep, version) == deep
        assert called(beside, version) == beside


def test_an_object_is_wrapped_only_where_the_client_was_told_so() -> None:
    result = {"content": [], "structuredContent": {"a": 1}}
    for version in PROJECTED:
        assert called(result, version, OF_OBJECTS) == called(result, version) == result
        assert called(result, version, OF_ARRAYS) == {"content": [], "structuredContent": {"result": {"a": 1}}}
    assert called(result, "2026-07-28", OF_ARRAYS) == result


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
def test_the_oldest_clients_get_a_text_in_its_place(version: str) -> None:
    value = {"a": [1.0]}
    assert called({"content": [TEXT], "structuredContent": value}, version) == {"content": [TEXT]}
    text = {"type": "text", "text": json.dumps(value)}
    image = {"type": "image", "data": "", "mimeType": "a/b"}
    assert called({"content": [image], "structuredContent": value}, version) == {"content": [image, text]}
    assert called({"structuredContent": value}, version) == {"content": [text]}


@pytest.mark.case("S26")
@pytest.mark.parametrize("content", [5, "x", {"type": "text"}, None])
def test_content_that_is_no_list_stays_what_it_is(content: Any) -> None:
    assert called({"content": content, "structuredContent": 1}, "2025-03-26") == {"content": content}


def test_blocks_that_a_client_does_not_know_are_texts_in_results_and_in_prompts() -> None:
    said = called({"content": [TEXT, AUDIO]}, "2024-11-05")
    assert [block["type"] for block in said["content"]] == ["text", "text"]
    messages = [
        {"role": "user", "content": AUDIO, "x": 1.0},
        {"role": "user", "content": TEXT},
        "audio",
        {"a": "audio"},
    ]
    body = json.dumps({"messages": messages}).encode()
    prompt = json.loads(fit_result(body, Shown("prompts/get", "2024-11-05")))["messages"]
    assert prompt[0]["content"]["type"] == "text"
    assert (prompt[0]["x"], prompt[1:]) == (1.0, messages[1:])
    assert fit_result(body, Shown("prompts/get", "2025-03-26")) is body
    assert fit_result(body, Shown("resources/read", "2024-11-05")) is body


@pytest.mark.parametrize("body", [b'[{"type":"audio"},{"structuredContent":5}]', b'"audio"'])
def test_a_result_that_is_no_object_is_not_our_matter(body: bytes) -> None:
    assert fit_result(body, Shown("tools/call", "2024-11-05")) is body


@pytest.mark.case("S26")
@pytest.mark.parametrize("member", ["content", "messages"])
def test_members_of_other_shapes_are_no_bug(member: str) -> None:
    body = json.dumps({member: {"type": "audio"}}).encode()
    for method in ("tools/call", "prompts/get"):
        assert fit_result(body, Shown(method, "2024-11-05")) is body
    body = json.dumps({member: [{"a": "audio"}]}).encode()
    assert fit_result(body, Shown("tools/call", "2024-11-05")) is body


def test_nearly_all_results_pass_without_being_read() -> None:
    common = b'{"content":[{"type":"text","text":"\\"structuredContent\\": 5"}],"structuredContent" : {"a":1}}'
    for version in ("2025-06-18", "2025-11-25", "2026-07-28"):
        assert not may_not_fit(common, Shown("tools/call", version, OF_OBJECTS))
        assert fit_result(common, Shown("tools/call", version)) is common


# Any JSON at all ------------------------------------------------------------------------------------------------------

BLOCKS = st.one_of(
    objects(VALUES, type=st.sampled_from(["text", "image", "audio", "resource_link", "x"]).map(json.dumps)), VALUES
)
RESULTS = objects(VALUES, content=st.one_of(arrays(BLOCKS), VALUES), structuredContent=VALUES, _meta=OBJECTS)
CHANGED = ("content", "structuredContent")


@pytest.mark.case("S26")
@given(RESULTS, st.sampled_from(VERSIONS), st.sampled_from([NO_DEFINITION, OF_ARRAYS, OF_OBJECTS]))
def test_every_result_stays_whole_but_for_what_its_client_cannot_take(
    text: str, version: str, definition: msgspec.Raw
) -> None:
    body = text.encode()
    result = fit_result(body, Shown("tools/call", version, definition))
    before, after = members(body), members(result)
    assert [pair for pair in read(result) if pair[0] not in CHANGED] == [
        pair for pair in read(body) if pair[0] not in CHANGED
    ]
    if version not in LEGACY_VERSIONS:
        assert result is body
        return
    value, given_content = before.get("structuredContent"), before.get("content")
    is_object = isinstance(value, tuple)
    if "structuredContent" not in before or version not in PROJECTED:
        assert "structuredContent" not in after
    elif is_object and definition is not OF_ARRAYS:
        assert after["structuredContent"] == value
    else:
        assert after["structuredContent"] == (("result", value),)
    if isinstance(given_content, list):
        kept = after["content"][: len(given_content)]
        assert len(kept) == len(given_content)
        for new, old in zip(kept, given_content, strict=True):
            assert new == old or dict(new)["type"] == "text"


@given(objects(VALUES, messages=st.one_of(arrays(objects(VALUES, content=BLOCKS)), VALUES)), st.sampled_from(VERSIONS))
def test_every_prompt_stays_whole_but_for_what_its_client_cannot_take(text: str, version: str) -> None:
    body = text.encode()
    result = fit_result(body, Shown("prompts/get", version))
    assert [key for key, _ in read(result)] == [key for key, _ in read(body)]
    before, after = members(body), members(result)
    assert {name: after[name] for name in after if name != "messages"} == {
        name: before[name] for name in before if name != "messages"
    }
    if version >= "2025-06-18":
        assert result is body
