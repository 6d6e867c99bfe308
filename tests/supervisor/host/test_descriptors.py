"""The limit of open files is raised as far as the kernel lets us, and no refusal keeps a daemon from starting."""

from __future__ import annotations

import resource

import pytest

from supervisor.host.descriptors import OPEN_MAX, raise_limit


@pytest.mark.parametrize(("most", "reached"), [(1 << 20, 65_536), (OPEN_MAX, OPEN_MAX), (0, 256)])
def test_the_limit_is_raised_as_far_as_the_kernel_lets_us(
    most: int, reached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {resource.RLIMIT_NOFILE: (256, resource.RLIM_INFINITY)}

    def set_limit(what: int, wanted: tuple[int, int]) -> None:
        if wanted[0] > most:
            raise ValueError("current limit exceeds maximum limit")
        limits[what] = wanted

    monkeypatch.setattr(resource, "getrlimit", limits.__getitem__)
    monkeypatch.setattr(resource, "setrlimit", set_limit)
    assert raise_limit() == 256
    assert limits[resource.RLIMIT_NOFILE] == (reached, resource.RLIM_INFINITY)
