"""Which claims wait for a pod that uses them."""

import pytest

from kubestow.cache.objects import ClusterObjects
from kubestow.errors import PluginError
from kubestow.plugins.volume_binding.delayed import is_delayed
from kubestow.testing.storage import make_claim, make_storage_class


def test_delayed_is_what_waits_for_its_first_consumer() -> None:
    objects = ClusterObjects()
    classes = objects.storage_classes
    objects.put(make_storage_class("wait"), make_storage_class("now", mode="Immediate"))
    objects.put(make_storage_class("unset", mode=None))
    assert is_delayed(make_claim(class_name="wait"), classes)
    assert not is_delayed(make_claim(class_name="now"), classes)
    assert not is_delayed(make_claim(class_name="gone"), classes)
    assert not is_delayed(make_claim(class_name=""), classes)
    with pytest.raises(PluginError) as raised:
        is_delayed(make_claim(class_name="unset"), classes)
    assert str(raised.value) == 'VolumeBindingMode not set for StorageClass "unset"'
