"""The context of a trace is read as W3C Trace Context has it, or counts as nothing; whatever else is said stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.tracing.context import (
    MAX_PARAMS_BYTES,
    TraceContext,
    read_head,
    read_params,
    read_parent,
    with_context,
)

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{SPAN}-01"
HEX = st.text("0123456789abcdef", min_size=1)
CONTEXTS = st.builds(
    TraceContext,
    st.text("0123456789abcdef", min_size=32, max_size=32).filter(lambda text: text != "0" * 32),
    st.text("0123456789abcdef", min_size=16, max_size=16).filter(lambda text: text != "0" * 16),
    st.booleans(),
    st.just("") | st.just("a=1,b=2"),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(CONTEXTS)
def test_what_is_written_is_read_again(context: TraceContext) -> None:
    assert read_parent(context.parent, context.state) == context


@pytest.mark.parametrize(
    "text",
    [
        *("", "00", GOOD[:-1], f"{GOOD}0", GOOD.upper(), f" {GOOD}", f"ff-{TRACE}-{SPAN}-01", f"{GOOD}-more"),
        *(f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE}-{SPAN}-zz", "\u0660" * 55),
    ],
)
def test_what_is_malformed_counts_as_nothing(text: str) -> None:
    assert read_parent(text) is None


def test_a_later_version_may_say_more() -> None:
    assert read_parent(f"01-{TRACE}-{SPAN}-01-more") == TraceContext(TRACE, SPAN, sampled=True)
    assert read_parent(f"00-{TRACE}-{SPAN}-02") == TraceContext(TRACE, SPAN, sampled=False)


@given(st.text())
def test_no_text_makes_it_raise(text: str) -> None:
    read_parent(text, text, text)


@given(st.binary())
def test_no_params_and_no_head_make_it_raise(data: bytes) -> None:
    read_params(data + b'"traceparent"')
    read_head({b"traceparent": data, b"tracestate": data})


@pytest.mark.parametrize("state", ["a" * 513, "a=\n", "a=\u00e4"])
def test_a_state_that_is_none_is_left_out(state: str) -> None:
    assert read_parent(GOOD, state) == TraceContext(TRACE, SPAN, sampled=True)


def test_it_is_read_where_it_stands() -> None:
    expected = TraceContext(TRACE, SPAN, sampled=True, state="a=1", baggage="b=2")
    meta = {"traceparent": GOOD, "tracestate": "a=1", "baggage": "b=2"}
    assert read_params(json.dumps({"name": "x", "_meta": meta}).encode()) == expected
    assert read_params(json.dumps({"arguments": {"_meta": meta}, "traceparent": GOOD}).encode()) is None
    assert read_params(json.dumps({"_meta": {"traceparent": 7}}).encode()) is None
    assert read_head({b"traceparent": GOOD.encode(), b"tracestate": b"a=1"}) == TraceContext(TRACE, SPAN, True, "a=1")
    assert read_head({}) is None
    large = json.dumps({"x": "y" * MAX_PARAMS_BYTES, "_meta": meta}).encode()
    assert read_params(large) is None


@given(st.dictionaries(st.text(), VALUES), CONTEXTS)
def test_everything_else_in_meta_stays(meta: dict[str, Any], context: TraceContext) -> None:
    written = json.dumps({**meta, "traceparent": GOOD, "baggage": "b=1"}).encode()
    told = json.loads(b"{" + with_context(written[1:-1], context) + b"}")
    own = {name: told.pop(name) for name in ("traceparent", "tracestate") if name in told}
    assert told == {name: each for name, each in meta.items() if name not in ("traceparent", "tracestate", "baggage")}
    assert own == {"traceparent": context.parent, **({"tracestate": context.state} if context.state else {})}


def test_it_may_be_all_that_there_is() -> None:
    context = TraceContext(TRACE, SPAN, sampled=False)
    assert with_context(b"", context) == b'"traceparent":"%b"' % context.parent.encode()
