"""A real API server accepts the objects that `tools.hostile` is about, at full size."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from kubestow.cluster.resources import default_resources
from kubestow.errors import ApiError, NotFoundError
from tools.hostile.cases import ALL_CASES
from tools.hostile.objects import Case

# Of each kind; the others are equal but for their names.
CREATED_MAX = 3
# These are too deep for a dict; test_deep_objects has them.
DEEP = ("managed fields nested", "opaque parameters nested")


async def _create(bench: Any, document: dict[str, Any]) -> None:
    """Admission sees a PriorityClass a moment after it was created."""
    for _ in range(50):
        try:
            await bench.create(document)
            return
        except ApiError as error:
            if "no PriorityClass" not in str(error):
                raise
        await asyncio.sleep(0.1)
    raise AssertionError("the PriorityClass does not appear")


def name_of(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", [case for case in ALL_CASES if case.name not in DEEP], ids=name_of)
def test_the_objects_are_accepted(run: Any, case: Case) -> None:
    async def main(bench: Any) -> None:
        resources, created = default_resources(), Counter[str]()
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}}
        await bench.create(node)
        for resource_name, document in case.make(case.size_max):
            created[resource_name] += 1
            if created[resource_name] > CREATED_MAX:
                continue
            resource = resources.named(resource_name)
            document = {"apiVersion": resource.api_version, "kind": resource.kind, **document}
            try:
                await _create(bench, document)
            except NotFoundError:
                pytest.skip(f"the server does not serve {resource.api_version} {resource.plural}")

    run(main)
