"""Every namespace has a service account and the server's certificate."""

import asyncio
from collections.abc import Callable
from typing import Any

from kubestow.cluster.resources import NAMESPACES

Play = Callable[..., None]


def test_old_and_new_namespaces_have_both(serve: Play):
    async def work(world: Any):
        world.cluster.create(NAMESPACES, {"metadata": {"name": "shop"}})
        await asyncio.sleep(1)
        for resource, name in (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")):
            found = [one for one in world.all(resource) if one["metadata"]["name"] == name]
            spaces = {one["metadata"]["namespace"] for one in found}
            assert spaces == {"default", "kube-node-lease", "shop"}
        assert world.get("configmaps", "kube-root-ca.crt")["data"] == {"ca.crt": "PEM"}

    serve(work)


def test_they_are_made_again_and_put_right(serve: Play):
    async def work(world: Any):
        await asyncio.sleep(1)
        world.delete("serviceaccounts", "default")
        world.delete("configmaps", "kube-root-ca.crt")
        await asyncio.sleep(1)
        assert world.get("serviceaccounts", "default")
        world.patch("configmaps", "kube-root-ca.crt", {"data": {"ca.crt": "another"}})
        world.patch("serviceaccounts", "default", {"metadata": {"labels": {"mine": "yes"}}})
        await asyncio.sleep(1)
        assert world.get("configmaps", "kube-root-ca.crt")["data"] == {"ca.crt": "PEM"}
        assert world.get("serviceaccounts", "default")["metadata"]["labels"] == {"mine": "yes"}

    serve(work)


def test_a_deleted_namespace_goes_with_them(serve: Play):
    async def work(world: Any):
        world.cluster.create(NAMESPACES, {"metadata": {"name": "shop"}})
        await asyncio.sleep(1)
        world.cluster.delete(NAMESPACES, "", "shop")
        await asyncio.sleep(1)
        assert world.cluster.find(NAMESPACES, "", "shop") is None

    serve(work)


def test_namespaces_of_the_system_are_made_again(serve: Play):
    async def work(world: Any):
        await asyncio.sleep(1)
        world.cluster.delete(NAMESPACES, "", "kube-node-lease")
        await asyncio.sleep(30)
        leases = world.all("leases.coordination.k8s.io")
        assert {lease["metadata"]["name"] for lease in leases} == {"n1", "n2", "n3"}

    serve(work)
