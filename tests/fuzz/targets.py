"""Every target by its name; docs/contributing/fuzzing.md says what each of them reads, and what must hold."""

from __future__ import annotations

from collections.abc import Mapping

from tests.fuzz.readers import of_clients, of_disk, of_files, of_issuers, of_models, of_remotes, of_servers
from tests.fuzz.target import Target

TARGETS: Mapping[str, Target] = {
    **of_servers.TARGETS,
    **of_clients.TARGETS,
    **of_models.TARGETS,
    **of_issuers.TARGETS,
    **of_files.TARGETS,
    **of_disk.TARGETS,
    **of_remotes.TARGETS,
}
