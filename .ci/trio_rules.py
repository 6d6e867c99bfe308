"""The rules of flake8-async that need no libcst, over the given files. Options are those of flake8-async.

Its own command parses each file with libcst and walks it in Python three times before the first rule: a second and more
for a file, of which these rules need nothing. `Flake8AsyncRunner` is what it calls for them; its version is pinned.
"""

from __future__ import annotations

import ast
import sys
from argparse import ArgumentParser
from pathlib import Path

from flake8_async import Plugin
from flake8_async.runner import Flake8AsyncRunner


def main() -> int:
    """Print what is found, as flake8-async does; return the exit code."""
    parser = ArgumentParser()
    Plugin.add_options(parser)
    options = parser.parse_args()
    Plugin.parse_options(options)
    found = False
    for file in options.files:
        tree = ast.parse(Path(file).read_bytes(), filename=file)
        for error in sorted(Flake8AsyncRunner.run(tree, Plugin._options)):
            print(f"{file}:{error}")
            found = True
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
