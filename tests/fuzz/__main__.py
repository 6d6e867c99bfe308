"""`python -m tests.fuzz TARGET --minutes N`: looks for inputs that a target does not bear, led by what they reach.

What it runs on is atheris (`pip install atheris`, Apache 2.0), which the tests do without. New inputs go to `--corpus`
(build/fuzz/TARGET), and one that breaks the target to that folder with `.broken` behind it: it belongs to
tests/fuzz/corpus/TARGET, with the repair. `--slow-ms`: an input that takes longer is broken, too.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]  # it may be missing: tests do without

with atheris.instrument_imports(include=["actors", "supervisor"], enable_loader_override=False):
    from tests.fuzz.target import CORPUS, MAX_BYTES, Target
    from tests.fuzz.targets import TARGETS

WORDS = (b"\n--\n", b"\\u", b"null", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"1e999", b"NaN", b"%00", b"\r\n", b"__proto__")
"""What is put in, beside what was seen in comparisons."""
TIMEOUT_S = 20
"""An input that takes longer ends the run."""
MEMORY_MIB = 10_240
"""More memory ends it, too. Some targets gain 7 kB with each input, with atheris alone: it keeps what it compared."""


class TooSlow(Exception):
    """An input takes too long."""


def _bounded(read: Target, slow_s: float) -> Target:
    def bounded(data: bytes) -> None:
        begun = time.thread_time()
        read(data)
        if (taken := time.thread_time() - begun) > slow_s:
            begun = time.thread_time()
            read(data)  # the first time may have been that of an import, or of a search for garbage
            if (again := time.thread_time() - begun) > slow_s:
                raise TooSlow(f"{taken:.3f} s, then {again:.3f} s, for {len(data)} bytes")

    return bounded


def main() -> None:
    """Run until something is found, or the time is over."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--slow-ms", type=float, default=500)
    arguments = parser.parse_args()
    name, target = arguments.target, TARGETS[arguments.target]
    found = arguments.corpus or Path("build/fuzz") / name
    found.mkdir(parents=True, exist_ok=True)
    words = found.with_suffix(".words")
    words.write_text("".join('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in WORDS))
    options = [
        f"-max_total_time={round(arguments.minutes * 60)}",
        f"-max_len={MAX_BYTES}",
        f"-timeout={TIMEOUT_S}",
        f"-artifact_prefix={found}.broken-",
        f"-dict={words}",
        "-print_final_stats=1",
        f"-rss_limit_mb={MEMORY_MIB}",
    ]
    atheris.Setup([sys.argv[0], *options, str(found), str(CORPUS / name)], _bounded(target, arguments.slow_ms / 1000))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
