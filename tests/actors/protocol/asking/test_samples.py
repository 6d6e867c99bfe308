"""What a model of a client is asked, and reading what it says: whatever that is."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol.asking.questions import sample_params, sampled_text

TEXTS = st.lists(st.text(), min_size=1, max_size=4)
OTHERS = st.sampled_from(
    [{"type": "image", "data": "eA==", "mimeType": "image/png"}, {"type": "tool_use", "text": "x"}]
)


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


@given(st.text(), st.text())
def test_one_text_is_asked_with_one_prompt(system: str, user: str) -> None:
    params = json.loads(bytes(sample_params(system, user)))
    assert params["systemPrompt"] == system
    assert params["messages"] == [{"role": "user", "content": {"type": "text", "text": user}}]
    assert params["maxTokens"] > 0


@given(TEXTS, st.lists(OTHERS, max_size=2))
def test_what_is_said_is_all_text_of_one_block_or_of_several(texts: list[str], others: list[Any]) -> None:
    blocks = [{"type": "text", "text": text} for text in texts]
    assert sampled_text(raw({"role": "assistant", "content": [*blocks, *others], "model": "m"})) == "".join(texts)
    assert sampled_text(raw({"role": "assistant", "content": blocks[0], "model": "m"})) == texts[0]
