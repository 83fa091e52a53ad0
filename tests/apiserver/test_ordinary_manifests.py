"""The manifests in `tests/data/shop`: what an ordinary repository contains."""

from pathlib import Path

import pytest

from kubestow.api.files import load_documents
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.schema.reading import read
from kubestow.testing.clock import ManualClock

SHOP = Path(__file__).parents[1] / "data" / "shop"
DOCUMENTS = [document.raw for document in load_documents([SHOP])]


def test_there_are_thirty_of_them():
    assert len(DOCUMENTS) == 30


def test_they_load_in_any_order(clock: ManualClock):
    cluster = MemoryCluster(clock, namespace_lifecycle=True)
    loaded = cluster.load(DOCUMENTS)
    assert {stored.resource.kind for stored in loaded} == {
        document["kind"] for document in DOCUMENTS
    }
    backup = cluster.get(cluster.resources.named("backups.shop.example.com"), "shop", "nightly")
    assert backup.document["spec"]["keep"] == 7


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["kind"])
def test_every_field_of_them_is_known(clock: ManualClock, document: dict[str, str]):
    cluster = MemoryCluster(clock)
    cluster.load([one for one in DOCUMENTS if one["kind"] == "CustomResourceDefinition"])
    served = cluster.served.of_kind(document["apiVersion"], document["kind"])
    assert read(document, served.schema).unknown == []
