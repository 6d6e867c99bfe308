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
AUDIO = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
LINK = {"type": "resource_link", "uri": "file:///a b", "name": "n"}


@pytest.mark.parametrize(
    ("block", "version", "told"),
    [
        (AUDIO, "2024-11-05", "[audio, audio/wav, 4 characters of base64, which this client cannot take]"),
        (
            {"type": "audio"},
            "2024-11-05",
            "[audio, of an unknown type, 0 characters of base64, which this client cannot take]",
        ),
        (LINK, "2025-03-26", "[resource 'n': file:///a b]"),
        ({**LINK, "title": "T", "mimeType": "text/plain"}, "2025-03-26", "[resource 'T', text/plain: file:///a b]"),
        ({**LINK, "title": "", "description": "What it is."}, "2025-03-26", "[resource 'n': file:///a b] What it is."),
        ({**LINK, "name": 5, "title": None}, "2025-03-26", "[resource: file:///a b]"),
    ],
)
def test_the_text_says_what_it_was(block: object, version: str, told: str) -> None:
    assert json.loads(bytes(fit_block(msgspec.Raw(json.dumps(block).encode()), version)))["text"] == told


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
