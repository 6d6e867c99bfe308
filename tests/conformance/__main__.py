"""`python -m tests.conformance`: the official conformance suite against the reference server, and through the door.

Installs both into a cache on the first run. The exit code is 1 if a scored scenario that passes directly fails through
the door without a reason that is listed in tests/conformance/known.py.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from tests.conformance.comparison import differences, table
from tests.conformance.installation import CACHE, Installation
from tests.conformance.runner import Runner
from tests.conformance.stage import Transport
from tests.conformance.suites import OTHER, REQUIREMENTS, SUITES

TRANSPORTS: tuple[Transport, ...] = ("stdio", "http")


def main() -> int:
    """Install, run, print; return the exit code."""
    chosen = _arguments()
    installation = Installation(chosen.cache)
    installation.make()
    runner = Runner(installation).before_nodes(chosen.nodes)
    wrong: list[str] = []
    unknown = set(chosen.scenario or ())
    transports = chosen.transport or (TRANSPORTS[:1] if chosen.short else TRANSPORTS)
    for suite in (SUITES[name] for name in chosen.suite or (REQUIREMENTS if chosen.short else SUITES)):
        behind = OTHER[suite.era] if chosen.across else "dual" if chosen.dual else suite.era
        eras: dict[str, bool] = {"across": chosen.across, "dual": chosen.dual}
        asked = runner.compare(suite, transports, chosen.scenario or (), doors=chosen.doors, **eras)
        for transport, rows in asked:
            print(f"\n### {suite.name}, a {behind} server over {transport}\n", *table(rows), sep="\n")
            print(*(f"\n- {line}" for line in differences(rows)), sep="", flush=True)
            unknown -= {row.scenario for row in rows}
            wrong += [f"{suite.name} over {transport}: {row.scenario}" for row in rows if row.is_wrong]
    print(f"Everything that the suite wrote is in {installation.results}")
    for line in wrong:
        print(f"passes directly and not through the door: {line}", file=sys.stderr)
    for line in sorted(unknown):
        print(f"no suite that was asked for has this scenario: {line}", file=sys.stderr)
    return int(bool(wrong or unknown))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--suite", action="append", choices=SUITES, help="only this one; may be repeated")
    parser.add_argument("--transport", action="append", choices=TRANSPORTS, help="how the daemon reaches the server")
    behind = parser.add_mutually_exclusive_group()
    behind.add_argument("--across", action="store_true", help="a server of the era that is not the suite's")
    behind.add_argument("--dual", action="store_true", help="a server that speaks both eras")
    parser.add_argument("--scenario", action="append", help="only this one; may be repeated")
    doors = parser.add_mutually_exclusive_group()
    fresh: dict[str, Any] = {"dest": "doors", "action": "store_const"}
    doors.add_argument("--fresh", **fresh, const="each", help="a daemon of its own for each scenario")
    doors.add_argument("--one-daemon", **fresh, const="one", help="one daemon for all scenarios of a suite")
    parser.set_defaults(doors="as needed")
    parser.add_argument("--short", action="store_true", help="both requirement sets, over stdio, as in the tests")
    parser.add_argument("--nodes", type=int, default=1, help="so many daemons, a fleet behind a balancer (1)")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where to install to ({CACHE})")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
