"""Image names (spec 01 §10)."""

import pytest

from kubestow.api.pod import Container, ImageVolume, Pod, PodSpec, Volume
from kubestow.plugins.image_locality import normalized_image, pod_images


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("nginx", "nginx:latest", id="G1-no-tag"),
        pytest.param("nginx:1.27", "nginx:1.27", id="G1-tag"),
        pytest.param("localhost:5000/nginx", "localhost:5000/nginx:latest", id="G2-port"),
        pytest.param("localhost:5000/nginx:1", "localhost:5000/nginx:1", id="port-and-tag"),
        pytest.param("r/nginx@sha256:abc", "r/nginx@sha256:abc", id="G3-digest"),
        pytest.param("", ":latest", id="G3-empty"),
        pytest.param("a:", "a:", id="empty-tag"),
    ],
)
def test_missing_tag_is_latest(name: str, expected: str) -> None:
    assert normalized_image(name) == expected


def test_pod_images_come_from_init_containers_containers_and_volumes() -> None:
    pod = Pod(
        spec=PodSpec(
            containers=(Container(image="app"), Container(image="app")),
            init_containers=(Container(image="init:1"),),
            volumes=(Volume(), Volume(image=ImageVolume(reference="data"))),
        )
    )
    assert pod_images(pod) == ("init:1", "app:latest", "app:latest", "data:latest")
