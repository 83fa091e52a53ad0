"""Names of container images, as pods write them and as nodes report them (spec 01 §10).

Not here: which nodes have an image (`cache.images`), its score (plugin ImageLocality).
"""

from kubestow.api.pod import Pod


def normalized_image(name: str) -> str:
    """The name with `:latest` where the pod gave no tag. Names reported by nodes stay as they are.

    A colon before the last slash belongs to a registry's port; one in a digest counts as a tag.
    """
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def pod_images(pod: Pod) -> tuple[str, ...]:
    """All images the pod needs, normalized: init containers, containers, image volumes.

    One used twice is listed twice.
    """
    spec = pod.spec
    return tuple(
        normalized_image(name)
        for name in (
            *(container.image for container in spec.init_containers),
            *(container.image for container in spec.containers),
            *(volume.image.reference for volume in spec.volumes if volume.image is not None),
        )
    )
