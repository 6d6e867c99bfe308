#!/usr/bin/env bash
# Makes the environments of the official clients for tests/e2e, once: .cache/mcp1 (Python SDK 1.x, the WebSocket client,
# a published server) and, where there is Node.js 20 or later, .cache/ts (both TypeScript clients), .cache/browser (Chromium,
# which also draws the diagrams of the site) and .cache/conformance (the official conformance suite, with a later Node.js
# from PyPI if need be). Everything is pinned. And .cache/prometheus and .cache/bubblewrap where apt-get has Debian's
# packages and none is installed: only unpacked, so that it takes no root, and no service of them starts.
# A run that finds what the pins ask for does nothing; one that was interrupted is repeated from the start.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
with_pip=${WITH_PIP:-$python}
pins=tests/e2e/clients

made() { # made DIRECTORY FILE...: what the files ask for is there
    [[ -f $1/made-of ]] && [[ $(<"$1/made-of") == "$(sha256sum "${@:2}")" ]]
}

if ! made .cache/mcp1 "$pins/mcp1.txt"; then
    rm -rf .cache/mcp1
    "$python" -m venv .cache/mcp1 --without-pip
    "$with_pip" -m pip --python .cache/mcp1/bin/python install --quiet --no-compile --requirement "$pins/mcp1.txt"
    sha256sum "$pins/mcp1.txt" >.cache/mcp1/made-of
fi

unpack() { # unpack PACKAGE PROGRAM...: Debian's package into .cache, whose programs say their version
    local package=$1 program apt=(apt-get -qq -o Acquire::Retries=0 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20)
    rm -rf ".cache/$package"
    mkdir -p ".cache/$package"
    cd ".cache/$package"
    "${apt[@]}" download "$package" || { [[ $(id -u) == 0 ]] && "${apt[@]}" update && "${apt[@]}" download "$package"; } &&
        dpkg-deb --extract "$package"_*.deb . && rm "$package"_*.deb || return
    for program in "${@:2}"; do "usr/bin/$program" --version || return; done
    touch made
}
if ! { command -v prometheus && command -v promtool || [[ -f .cache/prometheus/made ]]; } >/dev/null; then
    (unpack prometheus promtool prometheus) >/dev/null 2>&1 ||
        echo "clients.sh: no Prometheus, and apt-get has none: its tests will be reported as not run" >&2
fi
if ! { command -v bwrap || [[ -f .cache/bubblewrap/made ]]; } >/dev/null; then
    (unpack bubblewrap bwrap) >/dev/null 2>&1 ||
        echo "clients.sh: no bubblewrap, and apt-get has none: tests of sandboxes will be reported as not run" >&2
fi

if ! node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)' 2>/dev/null; then
    echo "clients.sh: no Node.js 20 or later: the TypeScript clients and conformance will be reported as not run" >&2
    exit
fi
if ! made .cache/ts "$pins/package.json" "$pins/package-lock.json"; then
    rm -rf .cache/ts
    mkdir -p .cache/ts
    cp "$pins/package.json" "$pins/package-lock.json" .cache/ts/
    npm ci --prefix .cache/ts --silent --no-audit --no-fund --ignore-scripts
    sha256sum "$pins/package.json" "$pins/package-lock.json" >.cache/ts/made-of
fi
browser=tests/e2e/browser
if ! made .cache/browser "$browser/package.json" "$browser/package-lock.json"; then
    rm -rf .cache/browser
    mkdir -p .cache/browser
    cp "$browser/package.json" "$browser/package-lock.json" .cache/browser/
    npm ci --prefix .cache/browser --silent --no-audit --no-fund --ignore-scripts
    # Unpacked once here: tests beside each other would write it at the same time. Where it cannot run, they say so.
    node "$browser/chromium.cjs" .cache/browser || true
    sha256sum "$browser/package.json" "$browser/package-lock.json" >.cache/browser/made-of
fi
"$with_pip" -m tests.conformance.installation
