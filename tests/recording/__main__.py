"""`python -m tests.recording --write [NAME ...]` plays the transcripts and writes what comes of them now."""

from __future__ import annotations

import sys
import time

from tests.recording.play import RECORDED, difference, play, transcripts


def main(words: list[str]) -> int:
    """Play all transcripts, or those of these names; return 1 if any is different and was not to be written."""
    named = [word for word in words if word != "--write"]
    changed = 0
    for name in named or transcripts():
        began, path = time.perf_counter(), RECORDED / name
        before = path.read_text(encoding="utf-8")
        after = play(before)
        print(f"{name}: {'same' if after == before else 'different'} ({time.perf_counter() - began:.1f} s)")
        if after != before and "--write" in words:
            path.write_text(after, encoding="utf-8")
        elif after != before:
            changed = 1
            print(difference(before, after))
    return changed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
