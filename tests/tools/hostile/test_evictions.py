"""The cases of evictions evict: else they would measure something else."""

import pytest

from kubestow.api.files import Document
from kubestow.apiserver.memory import MemoryCluster
from kubestow.config.profile import ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.simulation import place
from kubestow.testing import ManualClock
from tools.hostile.evictions import CASES
from tools.hostile.objects import Case

EVICTING = [case for case in CASES if case.name.startswith("evictions")]


def test_all_cases_but_one_are_about_evictions() -> None:
    assert len(EVICTING) == len(CASES) - 1 == 5


@pytest.mark.slow
@pytest.mark.parametrize("case", EVICTING, ids=lambda case: case.name)
def test_pods_are_evicted_for_the_urgent_one(case: Case) -> None:
    server = MemoryCluster(ManualClock())
    documents: list[Document] = []
    for resource, document in case.make(3):
        stored = server.create(server.resources.named(resource), document)
        documents.append(Document(stored.document, stored.name))
    pods = {document.source for document in documents if document.raw["kind"] == "Pod"}
    result = place(documents, SchedulerConfig(profiles=(ProfileConfig(),)))
    left = {pod.name: pod.node for pod in result.pods}
    assert left["hostile"].startswith("full-")
    assert len(pods) - len(left) >= 2
