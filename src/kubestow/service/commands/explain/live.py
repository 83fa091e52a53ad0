"""Where `kubestow explain` finds what runs: a cluster behind an API server, or a scheduler.

A server is only asked for lists; nothing is written to it. The role in deploy/ has the rights.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, TypeVar
from urllib.parse import urlencode

import msgspec
import numpy as np

from kubestow.api.decode import UNREADABLE
from kubestow.api.meta import ApiObject
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod
from kubestow.api.pod_group import CompositePodGroup, PodGroup
from kubestow.api.workload import PriorityClass
from kubestow.cache.objects import GROUP_KINDS, ClusterObjects
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.kubeconfig import ServerConfig
from kubestow.cluster.http.session import ApiSession
from kubestow.cluster.informer import POD_FIELD_SELECTOR
from kubestow.cluster.resources import POD_GROUPS
from kubestow.config.feature_gates import FeatureGates
from kubestow.errors import ApiError, InputError, NotFoundError
from kubestow.explain.cluster import StillCluster
from kubestow.explain.explanation import Explanation
from kubestow.explain.jobs import JobList, ListedJob, note_jobs
from kubestow.explain.many_explanation import ManyExplanation
from kubestow.plugins.loading import LoadedPlugins
from kubestow.service.user_agent import user_agent

T = TypeVar("T", Explanation, ManyExplanation)

_QPS: Final = 50.0
_BURST: Final = 100
_ANSWER_S: Final = 30.0  # how long a scheduler may take to answer
# The API server resolves priorities; a scheduler does not list classes either.
UNLISTED: Final = (PriorityClass,)


def live_cluster(
    server: ServerConfig,
    pod_key: tuple[str, str] | None,
    loaded: LoadedPlugins,
    gates: FeatureGates,
    clock: Clock,
) -> StillCluster:
    """The cluster behind an API server; InputError says which rights are missing.

    A pod that has ended is not listed; it is added if it is the one to explain, `pod_key`.
    """
    session = ApiSession(server, clock, user_agent=user_agent(), qps=_QPS, burst=_BURST)
    client = HttpClient(session, rng=np.random.default_rng(0))
    cluster = StillCluster(loaded.config, client, clock, registry=loaded.registry, gates=gates)

    async def read() -> list[ApiObject]:
        try:
            objects = await _listed(client, pod_key, gates)
            if any(isinstance(each, Pod) and _is_of_job(each) for each in objects):
                note_jobs(cluster, await _jobs(session))
            return objects
        finally:
            client.close()

    try:
        cluster.load(asyncio.run(read()))
    except ApiError as error:
        raise InputError(f"the cluster at {session.host} cannot be read: {error}") from error
    return cluster


def kept_explanation(server: ServerConfig, pod_key: tuple[str, str], clock: Clock) -> Explanation:
    """What a running scheduler keeps of a pod; InputError if nothing, or if it does not answer."""
    return _asked(server, clock, Explanation, namespace=pod_key[0], pod=pod_key[1])


def kept_of_all(server: ServerConfig, namespace: str, clock: Clock) -> ManyExplanation:
    """What a running scheduler keeps of all pods that wait, of one namespace or of all."""
    return _asked(server, clock, ManyExplanation, namespace=namespace, all="true")


def _asked(server: ServerConfig, clock: Clock, answer: type[T], **parameters: str) -> T:
    session = ApiSession(server, clock, user_agent=user_agent(), timeout_s=_ANSWER_S)
    query = urlencode(parameters)

    async def ask() -> bytes:
        try:
            return await session.request("GET", f"/explain?{query}")
        finally:
            session.close()

    try:
        return msgspec.json.decode(asyncio.run(ask()), type=answer)
    except ApiError as error:
        raise InputError(f"the scheduler at {session.host}: {error}{_advice(error)}") from error
    except UNREADABLE as error:
        raise InputError(
            f"the answer of {session.host} is not an explanation: {error}; is that a kubestow?"
        ) from error


def _advice(error: ApiError) -> str:
    """What to do about errors that a scheduler started by hand answers with."""
    if "system:anonymous" in str(error):
        return (
            "; it has not asked who you are: start it with --authentication-kubeconfig and "
            "--authorization-kubeconfig"
        )
    if "certificate is not accepted" in str(error):
        return "; with --insecure-skip-tls-verify it is not checked"
    return ""


async def _listed(
    client: HttpClient, pod_key: tuple[str, str] | None, gates: FeatureGates
) -> list[ApiObject]:
    kinds = [
        cls
        for cls in ClusterObjects().types()
        if cls not in UNLISTED and (cls not in GROUP_KINDS or _has_groups(cls, gates))
    ]
    lists = await asyncio.gather(*(_list(client, cls) for cls in kinds))
    objects = [each for listed in lists for each in listed]
    is_named = pod_key is not None
    if is_named and not any(isinstance(each, Pod) and _key(each) == pod_key for each in objects):
        objects += await _get_pod(client, pod_key)
    return objects


def _has_groups(cls: type[ApiObject], gates: FeatureGates) -> bool:
    """Whether groups of this kind are scheduled."""
    if cls is CompositePodGroup:
        return gates.has("CompositePodGroup")
    is_oldest = gates.edition.pod_group_version == POD_GROUPS.version
    return gates.enabled("GenericWorkload") and (cls is PodGroup) == is_oldest


def _is_of_job(pod: Pod) -> bool:
    owner = controller_of(pod)
    return owner is not None and owner.kind == "Job"


async def _jobs(session: ApiSession) -> list[ListedJob]:
    """All Jobs; none without the right to list them."""
    try:
        listed = await session.request("GET", "/apis/batch/v1/jobs")
        return msgspec.json.decode(listed, type=JobList).items
    except (ApiError, *UNREADABLE):
        return []


async def _list(client: ClusterClient, cls: type[ApiObject]) -> Sequence[ApiObject]:
    if not await client.is_served(cls):
        return ()
    try:
        return await client.list(cls, field_selector=POD_FIELD_SELECTOR if cls is Pod else "")
    except ApiError as error:
        if error.code in (401, 403):
            raise InputError(
                f"no right to list {cls.__name__} objects: {error}; the ClusterRole "
                '"kubestow-explain" has what is needed'
            ) from error
        raise


async def _get_pod(client: ClusterClient, key: tuple[str, str]) -> Sequence[Pod]:
    try:
        return (await client.get(Pod, *key),)
    except NotFoundError:
        return ()


def _key(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name
