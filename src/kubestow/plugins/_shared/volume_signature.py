"""What of a pod's volumes can make two pods differ for the volume plugins (spec 07 §1.1)."""

from typing import Final

import msgspec

from kubestow.api.decode import encode_json
from kubestow.api.pod import Pod
from kubestow.framework.plugin import SignFragments

_KEY: Final = "v1.Pod.Spec.Volumes.NonSyntheticSources()"


def volume_fragments(pod: Pod) -> SignFragments:
    """The sources of the pod's volumes, without names; ConfigMaps and Secrets are left out."""
    sources = (
        encode_json(msgspec.structs.replace(volume, name=""))
        for volume in pod.spec.volumes
        if volume.config_map is None and volume.secret is None
    )
    return {_KEY: tuple(sorted(sources))}
