"""Names of pods and nodes: of the files that the command line names, or of the cluster.

What cannot be read is not completed; the command itself says why. A cluster has a short time to
answer, and is asked for a limited number of objects.
"""

import asyncio
import logging
import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec

from kubestow.api.files import load_documents
from kubestow.api.meta import JsonObject
from kubestow.clock import SystemClock
from kubestow.cluster.documents import namespace_of, value_at
from kubestow.cluster.http.session import ApiSession
from kubestow.cluster.http.users_kubeconfig import Kubeconfig
from kubestow.errors import KubestowError
from kubestow.service.completion.table import NODES
from kubestow.service.completion.words import TypedLine
from kubestow.service.connections import user_agent
from kubestow.simulator.manifests import select_manifests
from kubestow.simulator.workloads import expand_workloads

TIMEOUT_S: Final = 2.0
OBJECTS_LIMIT: Final = 1000


def object_names(kind: str, line: TypedLine, incomplete: str) -> Sequence[str]:
    """Names of pods or nodes; of pods as NAMESPACE/NAME if that is what was begun."""
    files = [os.path.expanduser(file) for file in line.values.get("--filename", ()) if file != "-"]
    try:
        with _without_logs():
            found = _in_files(kind, files) if files else _in_cluster(kind, line, incomplete)
    except (KubestowError, OSError, TimeoutError, ValueError):
        return ()
    if kind == NODES:
        return sorted({name for _, name in found})
    wanted = line.last("--namespace")
    pods = [(place, name) for place, name in found if wanted in ("", place)]
    if "/" in incomplete:
        return sorted({f"{place}/{name}" for place, name in pods})
    return sorted({name for _, name in pods})


@contextmanager
def _without_logs() -> Generator[None]:
    """A line of the log would stand in the middle of what is typed."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _in_files(kind: str, files: Sequence[str]) -> Iterable[tuple[str, str]]:
    documents = load_documents(files, on_other=_ignore, on_refused=_ignore)
    if kind != NODES:
        documents = expand_workloads(select_manifests(documents).documents)
    wanted = "Node" if kind == NODES else "Pod"
    return [_name_of(each.raw) for each in documents if each.raw.get("kind") == wanted]


def _ignore(place: str) -> None: ...


def _in_cluster(kind: str, line: TypedLine, incomplete: str) -> Iterable[tuple[str, str]]:
    kubeconfig = Kubeconfig(line.last("--kubeconfig"), line.last("--context"))
    clock = SystemClock()
    session = ApiSession(
        kubeconfig.server(clock), clock, user_agent=user_agent(), timeout_s=TIMEOUT_S
    )
    namespace = "" if "/" in incomplete else line.last("--namespace") or kubeconfig.namespace
    place = f"/namespaces/{namespace}" if namespace and kind != NODES else ""
    path = f"/api/v1{place}/{'nodes' if kind == NODES else 'pods'}?limit={OBJECTS_LIMIT}"

    async def ask() -> bytes:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await session.request("GET", path)
        finally:
            session.close()

    answer = msgspec.json.decode(asyncio.run(ask()))
    return [_name_of(item) for item in answer["items"]]


def _name_of(raw: JsonObject) -> tuple[str, str]:
    namespace = namespace_of(raw)
    return namespace, value_at(raw, "metadata", "name") or ""
