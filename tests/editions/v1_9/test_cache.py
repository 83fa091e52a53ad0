"""What v1.9 reads of today's objects under older names."""

from kubestow.api.meta import ObjectMeta
from kubestow.api.node import Node
from kubestow.api.storage import PersistentVolume
from kubestow.api.topology import BETA_REGION_LABEL, BETA_ZONE_LABEL, ZONE_LABEL
from kubestow.editions.v1_9.cache import ObjectsV19, with_older_labels
from kubestow.testing.builders import make_node
from kubestow.testing.storage import make_volume


def labels_of(node: Node) -> dict[str, str]:
    return dict(with_older_labels(node).metadata.labels)


def test_todays_labels_count_as_the_older_ones() -> None:
    found = labels_of(make_node("n", zone="z", region="r"))
    assert (found[BETA_ZONE_LABEL], found[BETA_REGION_LABEL]) == ("z", "r")


def test_an_older_label_stays_as_it_is() -> None:
    node = make_node("n", zone="new", labels={BETA_ZONE_LABEL: "old"})
    assert labels_of(node)[BETA_ZONE_LABEL] == "old"
    plain = Node(metadata=ObjectMeta(name="n"))
    assert with_older_labels(plain) is plain


def test_stores_of_nodes_and_volumes_map() -> None:
    objects = ObjectsV19()
    objects.put(make_node("n", zone="z"), make_volume("v", labels={ZONE_LABEL: "z"}))
    node, volume = objects.nodes.get("n"), objects.store(PersistentVolume).get("v")
    assert node is not None
    assert volume is not None
    assert node.metadata.labels[BETA_ZONE_LABEL] == volume.metadata.labels[BETA_ZONE_LABEL] == "z"
