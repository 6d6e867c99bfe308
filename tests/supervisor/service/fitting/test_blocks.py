"""Content blocks that older clients do not know, as texts."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol.agreement.versions import LEGACY_VERSIONS, MODERN_VERSIONS
from actors.protocol.wire.json import text_at
from supervisor.service.fitting.results import BLOCKS_SINCE, fit_block
from tests.fakes.json_texts import VALUES, members, objects

VERSIONS = (*LEGACY_VERSIONS, *MODERN_VERSIONS)
AUDIO = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav", "annotations": {"priority": 1.0}, "_meta": {"a": 1}}
LINK = {"type": "resource_link", "uri": "file:///a b", "name": "n"}


def shown(block: object, version: str) -> object:
    return json.loads(bytes(fit_block(msgspec.Raw(json.dumps(block).encode()), version)))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_block_is_a_text_for_clients_of_revisions_before_its_own(version: str) -> None:
    for block in (AUDIO, LINK):
        text = shown(block, version)
        assert isinstance(text, dict)
        assert (text == block) == (version >= BLOCKS_SINCE[str(block["type"])])
        assert text == block or text["type"] == "text"


def test_the_text_says_what_it_was_and_keeps_what_is_about_the_block() -> None:
    assert shown(AUDIO, "2024-11-05") == {
        "type": "text",
        "text": "[audio, audio/wav, 4 characters of base64, which this client cannot take]",
        "annotations": {"priority": 1.0},
        "_meta": {"a": 1},
    }


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "[resource 'n': file:///a b]"),
        ({"title": "T", "mimeType": "text/plain"}, "[resource 'T', text/plain: file:///a b]"),
        ({"title": "", "description": "What it is."}, "[resource 'n': file:///a b] What it is."),
        ({"name": 5, "title": None}, "[resource: file:///a b]"),
    ],
)
def test_a_link_is_told_with_its_uri(more: dict[str, object], text: str) -> None:
    assert shown({**LINK, **more}, "2025-03-26") == {"type": "text", "text": text}


def test_audio_without_anything_is_no_bug() -> None:
    said = shown({"type": "audio"}, "2024-11-05")
    assert said == {
        "type": "text",
        "text": "[audio, of an unknown type, 0 characters of base64, which this client cannot take]",
    }


@pytest.mark.parametrize("block", [{"type": "text", "text": "audio"}, ["audio"], "audio", {"type": 5, "a": "audio"}])
def test_what_only_mentions_a_kind_stays(block: object) -> None:
    assert shown(block, "2024-11-05") == block


KINDS = st.sampled_from(["text", "image", "audio", "resource_link", "resource", "hologram"]).map(json.dumps)


@given(objects(VALUES, type=KINDS), st.sampled_from(VERSIONS))
def test_any_block_is_itself_or_a_text_that_an_old_client_takes(text: str, version: str) -> None:
    block = msgspec.Raw(text.encode())
    result = fit_block(block, version)
    if version < BLOCKS_SINCE.get(text_at(block, "type"), ""):
        told, own = members(bytes(result)), members(text.encode())
        assert told["type"] == "text"
        assert isinstance(told["text"], str)
        assert {name: told[name] for name in told if name not in ("type", "text")} == {
            name: own[name] for name in ("annotations", "_meta") if name in own
        }
    else:
        assert result is block
