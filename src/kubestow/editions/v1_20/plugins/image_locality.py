"""ImageLocality of v1.17 and v1.20: the images of regular containers only (spec 05 §19)."""

from kubestow.api.pod import Pod
from kubestow.plugins.image_locality import ImageLocality, normalized_image


class ImageLocality120(ImageLocality):
    def _images(self, pod: Pod) -> tuple[str, ...]:
        return tuple(normalized_image(container.image) for container in pod.spec.containers)

    def _container_count(self, pod: Pod) -> int:
        return len(pod.spec.containers)
