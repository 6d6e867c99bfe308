"""The virtual clock must not jump while a thread works: what is small is worked out at once here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from supervisor.oauth.bearer import verifier


@pytest.fixture(autouse=True)
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(work: Callable[[], Any]) -> Any:
        return work()

    monkeypatch.setattr(verifier, "beside", at_once)
