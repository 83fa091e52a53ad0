"""Spec 07 §1.4: in-tree volumes as CSI volumes."""

from typing import Any

import pytest

from kubestow.api.csi_translation import (
    TranslationError,
    in_tree_volume,
    inline_handle,
    migrated_plugins,
    persistent_handle,
    translated_affinity,
)
from kubestow.api.pod import (
    AwsElasticBlockStore,
    AzureDisk,
    AzureFile,
    Cinder,
    GcePersistentDisk,
    NodeSelectorTerm,
    PortworxVolume,
    Volume,
    VsphereVolume,
)
from kubestow.api.storage import PersistentVolume
from kubestow.api.topology import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL
from kubestow.testing import make_term
from kubestow.testing.storage import make_csi_node, make_volume, make_volume_affinity

EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def handle_of(pv: PersistentVolume) -> str:
    found = in_tree_volume(pv.spec)
    assert found is not None
    return persistent_handle(pv, found)


def ebs(
    *, labels: dict[str, str] | None = None, terms: list[NodeSelectorTerm] | None = None
) -> PersistentVolume:
    source = AwsElasticBlockStore(volume_id="vol-1")
    return make_volume(labels=labels, terms=terms, aws_elastic_block_store=source)


def affinity_of(pv: PersistentVolume) -> Any:
    found = in_tree_volume(pv.spec)
    assert found is not None
    return translated_affinity(pv, found)


@pytest.mark.parametrize(
    ("volume", "driver", "handle"),
    [
        pytest.param(
            Volume(aws_elastic_block_store=AwsElasticBlockStore(volume_id="x y")),
            "ebs.csi.aws.com",
            "x y",
            id="ebs-verbatim",
        ),
        pytest.param(
            Volume(aws_elastic_block_store=AwsElasticBlockStore(volume_id="aws://a/vol-12")),
            "ebs.csi.aws.com",
            "vol-12",
            id="ebs-url",
        ),
        pytest.param(
            Volume(gce_persistent_disk=GcePersistentDisk(pd_name="pd1")),
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/pd1",
            id="gce",
        ),
        pytest.param(
            Volume(azure_disk=AzureDisk(disk_name="d", disk_uri="/uri/d", kind="MANAGED")),
            "disk.csi.azure.com",
            "/uri/d",
            id="azure",
        ),
        pytest.param(
            Volume(cinder=Cinder(volume_id="ci")), "cinder.csi.openstack.org", "ci", id="cinder"
        ),
        pytest.param(
            Volume(portworx_volume=PortworxVolume(volume_id="px")),
            "pxd.portworx.com",
            "px",
            id="portworx",
        ),
    ],
)
def test_inline_volumes_have_driver_and_handle(volume: Volume, driver: str, handle: str) -> None:
    found = in_tree_volume(volume)
    assert found is not None
    assert found.plugin.can_migrate
    assert (found.plugin.driver, inline_handle(found)) == (driver, handle)


@pytest.mark.parametrize(
    "volume",
    [
        pytest.param(Volume(azure_file=AzureFile(share_name="s")), id="azure-file"),
        pytest.param(Volume(vsphere_volume=VsphereVolume(volume_path="p")), id="vsphere"),
    ],
)
def test_two_plugins_translate_but_never_migrate(volume: Volume) -> None:
    found = in_tree_volume(volume)
    assert found is not None
    assert not found.plugin.can_migrate
    inline_handle(found)


@pytest.mark.parametrize(
    "volume_id", ["aws://a/b", "aws:///a/vol-1", "aws://a/vol-1/x", "aws://vol-1"]
)
def test_an_ebs_url_must_end_in_a_volume_id(volume_id: str) -> None:
    pv = make_volume(aws_elastic_block_store=AwsElasticBlockStore(volume_id=volume_id))
    with pytest.raises(TranslationError):
        handle_of(pv)


def test_azure_disks_must_be_managed() -> None:
    pv = make_volume(azure_disk=AzureDisk(disk_uri="u", kind="Shared"))
    with pytest.raises(TranslationError) as raised:
        handle_of(pv)
    assert str(raised.value) == "kind(Shared) is not supported in csi migration"


@pytest.mark.parametrize(
    ("labels", "location"),
    [
        pytest.param({}, "zones/UNSPECIFIED", id="none"),
        pytest.param({ZONE_LABEL: "a-b-c"}, "zones/a-b-c", id="one"),
        pytest.param(
            {BETA_ZONE_LABEL: "b-1-a", ZONE_LABEL: "a-b-c"}, "zones/b-1-a", id="beta-first"
        ),
        pytest.param({BETA_ZONE_LABEL: "", ZONE_LABEL: "a-b-c"}, "zones/a-b-c", id="empty-beta"),
        pytest.param({ZONE_LABEL: "a-b-c__a-b-d"}, "regions/a-b", id="region"),
        pytest.param({ZONE_LABEL: "a-b-c__"}, "zones/a-b-c", id="empty-part"),
    ],
)
def test_gce_disks_have_a_location(labels: dict[str, str], location: str) -> None:
    pv = make_volume(labels=labels, gce_persistent_disk=GcePersistentDisk(pd_name="pd"))
    assert handle_of(pv) == f"projects/UNSPECIFIED/{location}/disks/pd"


@pytest.mark.parametrize("zones", ["a-b-c__a-d-c", "a-b__a-c", "a-b-c-d__a-b-c-e"])
def test_gce_zones_must_share_a_region(zones: str) -> None:
    pv = make_volume(
        labels={ZONE_LABEL: zones}, gce_persistent_disk=GcePersistentDisk(pd_name="pd")
    )
    with pytest.raises(TranslationError):
        handle_of(pv)


@pytest.mark.parametrize(
    ("pv", "terms"),
    [
        pytest.param(ebs(), None, id="nothing"),
        pytest.param(
            ebs(
                terms=[make_term(f"{ZONE_LABEL} In a", "x Exists"), make_term(f"{ZONE_LABEL} In b")]
            ),
            [make_term(f"{EBS_ZONE} In a", "x Exists"), make_term(f"{EBS_ZONE} In b")],
            id="2-renamed-in-every-term",
        ),
        pytest.param(
            ebs(labels={ZONE_LABEL: "c"}, terms=[make_term(f"{BETA_ZONE_LABEL} In a")]),
            [make_term(f"{EBS_ZONE} In a")],
            id="1-keys-before-labels",
        ),
        pytest.param(
            ebs(
                labels={BETA_ZONE_LABEL: "a"}, terms=[make_term("x Exists"), make_term("y Exists")]
            ),
            [make_term("x Exists", f"{EBS_ZONE} In a"), make_term("y Exists", f"{EBS_ZONE} In a")],
            id="2-label-appended-to-every-term",
        ),
        pytest.param(
            ebs(labels={ZONE_LABEL: "b__ a____b"}),
            [make_term(f"{EBS_ZONE} In a,b")],
            id="2-sorted-set",
        ),
        pytest.param(
            ebs(labels={ZONE_LABEL: "a"}, terms=[]),
            [make_term(f"{EBS_ZONE} In a")],
            id="2-no-terms",
        ),
        pytest.param(
            ebs(terms=[make_term(f"{BETA_ZONE_LABEL} In a", f"{BETA_REGION_LABEL} In r")]),
            [make_term(f"{EBS_ZONE} In a", f"{REGION_LABEL} In r")],
            id="3-beta-region",
        ),
        pytest.param(
            ebs(terms=[make_term(f"{ZONE_LABEL} In a", f"{BETA_REGION_LABEL} In r")]),
            [make_term(f"{EBS_ZONE} In a", f"{BETA_REGION_LABEL} In r")],
            id="3-ga-family-leaves-beta-region",
        ),
        pytest.param(
            ebs(labels={ZONE_LABEL: "b"}, terms=[make_term(f"{ZONE_LABEL} Exists")]),
            [make_term(f"{ZONE_LABEL} Exists", f"{EBS_ZONE} In b")],
            id="2-a-key-without-values-is-no-zone",
        ),
    ],
)
def test_topology_is_translated(pv: PersistentVolume, terms: list[NodeSelectorTerm] | None) -> None:
    expected = None if terms is None else make_volume_affinity(*terms)
    assert affinity_of(pv) == expected


def test_disks_without_zones_keep_their_affinity() -> None:
    terms = [make_term(f"{ZONE_LABEL} In a")]
    pv = make_volume(labels={ZONE_LABEL: "b"}, terms=terms, azure_disk=AzureDisk(disk_uri="u"))
    assert affinity_of(pv) == make_volume_affinity(*terms)


def test_a_label_without_a_zone_fails() -> None:
    with pytest.raises(TranslationError):
        affinity_of(ebs(labels={ZONE_LABEL: ""}))


@pytest.mark.parametrize(
    ("listed", "plugins"),
    [
        pytest.param(None, set[str](), id="no-annotation"),
        pytest.param("", set[str](), id="empty"),
        pytest.param("a,b", {"a", "b"}, id="two"),
        pytest.param("a, b", {"a", " b"}, id="not-trimmed"),
    ],
)
def test_migrated_plugins_are_listed(listed: str | None, plugins: set[str]) -> None:
    assert migrated_plugins(make_csi_node("n", migrated=listed)) == plugins


def test_without_csi_node_nothing_is_migrated() -> None:
    assert migrated_plugins(None) == frozenset()
