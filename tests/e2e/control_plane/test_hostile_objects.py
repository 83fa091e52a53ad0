"""A real API server accepts the objects that `tools.hostile` is about, at full size.

It also serves groups of pods, if its version has them.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.control_plane.conftest import ControlPlane, control_plane, run_on
from tests.e2e.control_plane.test_gang_dialects import gates_of
from tests.e2e.control_plane.test_gang_takeover import GROUPS

from kubestow.cluster.http.http_client import list_path
from kubestow.cluster.resources import ResourceTable, default_resources
from kubestow.errors import ApiError, NotFoundError
from tools.hostile.cases import ALL_CASES
from tools.hostile.objects import Case

# Of each kind; the others are equal but for their names.
CREATED_MAX = 3
# These are too deep for a dict; test_deep_objects has them.
DEEP = ("managed fields nested", "opaque parameters nested")


@pytest.fixture(scope="module", name="plane")
def _plane(server_minor: int) -> Iterator[ControlPlane]:
    flags: tuple[str, ...] = ()
    if server_minor in GROUPS:
        version, _ = GROUPS[server_minor]
        flags = (gates_of(server_minor), f"--runtime-config={version}=true")
    with control_plane(*flags) as plane:
        yield plane


@pytest.fixture(name="resources")
def _resources(server_minor: int) -> ResourceTable:
    if server_minor not in GROUPS:
        return default_resources()
    api_version, _ = GROUPS[server_minor]
    return default_resources(api_version.rpartition("/")[2])


async def _create(bench: Any, path: str, document: dict[str, Any]) -> None:
    """Admission sees a PriorityClass a moment after it was created."""
    for _ in range(50):
        try:
            await bench.client.create_document(path, document)
            return
        except ApiError as error:
            if "no PriorityClass" not in str(error):
                raise
        await asyncio.sleep(0.1)
    raise AssertionError("the PriorityClass does not appear")


def name_of(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", [case for case in ALL_CASES if case.name not in DEEP], ids=name_of)
def test_the_objects_are_accepted(
    plane: ControlPlane, resources: ResourceTable, case: Case
) -> None:
    async def main(bench: Any) -> None:
        created = Counter[str]()
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}}
        await bench.create(node)
        for resource_name, document in case.make(case.size_max):
            created[resource_name] += 1
            if created[resource_name] > CREATED_MAX:
                continue
            resource = resources.named(resource_name)
            document = {"apiVersion": resource.api_version, "kind": resource.kind, **document}
            path = list_path(resource, document["metadata"].get("namespace", ""))
            try:
                await _create(bench, path, document)
            except NotFoundError:
                pytest.skip(f"the server does not serve {resource.api_version} {resource.plural}")

    run_on(plane, main)
