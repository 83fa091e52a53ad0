"""Free storage by class and nodes."""

from kubestow.api.labels import LabelSelector
from kubestow.cache.objects import ClusterObjects
from kubestow.plugins.volume_binding.capacity import StorageCapacities
from kubestow.testing import make_node
from kubestow.testing.storage import FAST, make_capacity


def test_the_first_sufficient_object_by_name_is_used() -> None:
    objects = ClusterObjects()
    capacities = StorageCapacities(objects.csi_storage_capacities)
    for name, size in (("d", "9Gi"), ("b", "5Gi"), ("a", "1Gi"), ("c", "5Gi")):
        objects.put(make_capacity(name, size=size, topology=LabelSelector()))
    of_class = capacities.of_class(FAST)
    for size_gi, expected in ((1, "a"), (3, "b"), (5, "b"), (6, "d")):
        found = of_class.first_sufficient(make_node("n"), size_gi << 30)
        assert found is not None
        assert found.metadata.name == expected
    assert of_class.first_sufficient(make_node("n"), 10 << 30) is None
