"""Inputs of a target for hypothesis: its samples and what was found, changed in a few places, and bytes of any kind."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tests.fuzz.target import MAX_BYTES

WORDS = (
    *(
        b"\n--\n",
        b"\n",
        b"\r\n\r\n",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\\ud800",
        b"\\",
        b'"',
        b"'",
        b":",
        b"%00",
    ),
    *(
        b"null",
        b"NaN",
        b"1e999",
        b"-0",
        b"9" * 400,
        b"9" * 5000,
        b"{",
        b"}",
        b"[",
        b"]",
        b"[" * 300,
        b'{"a":' * 300,
        b"true",
    ),
    *(
        "\u202e".encode(),
        "\uff45".encode(),
        "\u0130".encode(),
        b"__proto__",
        b"$ref",
        b"#/",
        b"../",
        b"${A}",
        b"x" * 9000,
    ),
)
"""What readers stumble over."""


@st.composite
def inputs(draw: st.DrawFn, samples: Sequence[bytes]) -> bytes:
    """Draw one input."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=200))
    data = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from((0, 1, 2, 8, 40, 200))))
        match draw(st.integers(0, 4)):
            case 0:
                middle = b""
            case 1:
                middle = draw(st.sampled_from(WORDS))
            case 2:
                middle = data[start:end] * draw(st.sampled_from((2, 3, 50)))
            case 3:
                other = draw(st.sampled_from(samples))
                place = draw(st.integers(0, len(other)))
                middle = other[place : place + 60]
            case _:
                middle = draw(st.binary(max_size=4))
        data = data[:start] + middle + data[end:]
    return data[:MAX_BYTES]
