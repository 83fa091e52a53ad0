"""ImageLocality of v1.37: image volumes count as containers do (spec 12 §7.2)."""

from kubestow.api.pod import Pod
from kubestow.plugins.image_locality import ImageLocality


class ImageLocalityV137(ImageLocality):
    def _container_count(self, pod: Pod) -> int:
        volumes = sum(volume.image is not None for volume in pod.spec.volumes)
        return super()._container_count(pod) + volumes
