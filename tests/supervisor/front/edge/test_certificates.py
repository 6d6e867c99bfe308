"""The certificate of the daemon: read when it changes, and kept while what is there cannot be used."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import trio

from actors.errors import ConfigError
from supervisor.front.edge import serve as module
from supervisor.front.edge.serve import Certificates
from tests.fakes.certificates import certificate


async def changed(certificates: Certificates, before: object) -> None:
    with trio.fail_after(30):
        while certificates.context is before:  # noqa: ASYNC110 - files change, and nothing tells of it
            await trio.sleep(0.01)


async def test_another_certificate_is_taken_and_a_broken_one_is_not(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.01)
    pem, _ = certificate(tmp_path)
    certificates = Certificates(str(pem), str(tmp_path / "key.pem"))
    first = certificates.context
    nursery.start_soon(certificates.run)
    with caplog.at_level(logging.INFO):
        pem.write_text("nonsense")
        with trio.fail_after(30):
            while "the one before it stays" not in caplog.text:  # noqa: ASYNC110 - the same
                await trio.sleep(0.01)
        assert certificates.context is first
        certificate(tmp_path)
        await changed(certificates, first)
    assert "PRIVATE" not in caplog.text


@pytest.mark.parametrize("content", [None, b"", b"nonsense"])
def test_one_that_cannot_be_used_is_a_mistake_of_the_configuration(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "certificate.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        Certificates(str(file))
    assert caught.value.key == "tls_certificate"
    assert caught.value.hint
