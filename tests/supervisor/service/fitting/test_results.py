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
OF_ARRAYS = msgspec.Raw(b'{"name":"t","outputSchema":{"type":"array"}}')
OF_OBJECTS = msgspec.Raw(b'{"name":"t","outputSchema":{"type":"object"}}')


def called(result: Any, version: str, definition: msgspec.Raw = NO_DEFINITION) -> Any:
    body = json.dumps(result).encode()
    return json.loads(fit_result(body, Shown("tools/call", version, definition)))


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
