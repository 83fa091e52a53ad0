"""What the forms of the page do to the demo's cluster.

The input of a form is decoded into a struct of its own, so that a wrong field is named. All of it
goes through the API server in memory, as a client's requests would.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Annotated, Final

import msgspec

from kubestow.api.files import Document, documents_in
from kubestow.api.labels import label_value_errors
from kubestow.api.meta import JsonObject
from kubestow.api.quantity import parse_quantity
from kubestow.apiserver.eviction import evict
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.writes.names import name_errors
from kubestow.clock import Clock
from kubestow.cluster.documents import objects_in, value_at, whole_seconds
from kubestow.cluster.resources import NAMESPACES, NODES, PODS, ApiResource
from kubestow.errors import ApiError, InputError, NotFoundError
from kubestow.plural import counted
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.cluster_file import load_cluster_files, namespace_in, saved_content
from kubestow.simulator.kubelet_switch import KUBELET, STOPPED
from kubestow.simulator.live.forms import EmptyForm, FormInput, done, form_of, wrong
from kubestow.simulator.live.pod_mover import PodMover
from kubestow.simulator.live.remedies import SuggestionForm, apply_suggestion
from kubestow.simulator.live.scenario_player import ScenarioPlayer, scenario_in
from kubestow.simulator.live.templates import (
    NAMESPACE,
    SHAPES,
    TEMPLATES,
    PodTemplate,
    TemplateChoice,
    pod_document,
)
from kubestow.simulator.live.time_control import PacedTime, TimeActions
from kubestow.simulator.node_shapes import node_document, parse_shape

# Pods or nodes of one action.
ADDED_MAX: Final = 1_000
# Of a workload that is scaled.
REPLICAS_MAX: Final = 10_000
SCALED_KINDS: Final = ("Deployment", "StatefulSet", "ReplicaSet")
TEXT_NAME: Final = "text"
_BURST: Final = 20

# What a loaded cluster replaces; owners first, or they would make their pods again.
_REPLACED: Final = (
    "cronjobs.batch",
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
    "replicasets.apps",
    "pods",
    "nodes",
)

Count = Annotated[int, msgspec.Meta(ge=1, le=ADDED_MAX)]


class _Text(FormInput, frozen=True, kw_only=True):
    text: str
    # Of the file that the text is from; used in errors.
    name: Annotated[str, msgspec.Meta(max_length=255)] = ""


class _Pods(FormInput, frozen=True, kw_only=True):
    template: str
    count: Count = 1
    namespace: str = NAMESPACE
    name: str = ""
    cpu: str | None = None
    memory: str | None = None
    resources: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    priority: str | None = None
    node_selector: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    run_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] | None = None


class _Nodes(FormInput, frozen=True, kw_only=True):
    shape: str
    count: Count = 1


class _Node(FormInput, frozen=True, kw_only=True):
    node: str


class _Named(FormInput, frozen=True, kw_only=True):
    kind: str
    namespace: str = ""
    name: str


class _Scale(_Named, frozen=True, kw_only=True):
    replicas: Annotated[int, msgspec.Meta(ge=0, le=REPLICAS_MAX)]


class _Pod(FormInput, frozen=True, kw_only=True):
    namespace: str
    name: str


class ClusterActions:
    """The forms of a demo."""

    def __init__(
        self,
        store: MemoryCluster,
        clock: Clock,
        *,
        time: PacedTime | None = None,
        before_load: Callable[[], None] = lambda: None,
        setup: PlacingSetup | None = None,
    ) -> None:
        """`before_load` is called when the cluster is about to be replaced; plans are made with the
        scheduler of `setup`."""
        self._store = store
        self._clock = clock
        self._before_load = before_load
        self._setup = setup or PlacingSetup()
        self._scenarios = ScenarioPlayer(store, clock)
        self._mover = PodMover(store, clock)
        self._actions: dict[str, Callable[[JsonObject], Awaitable[JsonObject]]] = {
            "create": self._create,
            "add-pods": self._add_pods,
            "add-nodes": self._add_nodes,
            "cordon": self._cordon,
            "uncordon": self._uncordon,
            "drain": self._drain,
            "fail": self._fail,
            "repair": self._repair,
            "delete": self._delete,
            "scale": self._scale,
            "release": self._release,
            "apply": self._apply,
            "move": self._move,
            "plan": self._plan,
            "load": self._load,
            "save": self._save,
        }
        if time is not None:
            self._actions |= TimeActions(time).by_name

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._actions)

    def templates(self) -> JsonObject:
        return {
            "pods": [
                {"name": name, "title": one.title, "cpu": one.cpu, "memory": one.memory}
                for name, one in TEMPLATES.items()
            ],
            "shapes": [{"title": title, "shape": shape} for title, shape in SHAPES.items()],
        }

    async def perform(self, name: str, body: JsonObject) -> JsonObject:
        return await self._actions[name](body)

    # --- objects ---

    async def _create(self, body: JsonObject) -> JsonObject:
        documents = _documents(form_of(_Text, body))
        for index, document in enumerate(documents):
            try:
                self._store.load([document.raw])
            except ApiError as error:
                are = "is" if index == 1 else "are"
                before = f"; {counted(index, 'object')} before it {are} created" if index else ""
                raise _refused(f"{document.source}: {error}{before}", error) from error
        return done(f"created {counted(len(documents), 'object')}", len(documents))

    async def _add_pods(self, body: JsonObject) -> JsonObject:
        form = form_of(_Pods, body)
        template = TEMPLATES.get(form.template)
        if template is None:
            known = ", ".join(TEMPLATES)
            raise wrong(f'there is no template "{form.template}", only {known}', "template")
        self._check_pods(form)
        if self._store.find(NAMESPACES, "", form.namespace) is None:
            self._store.create(NAMESPACES, {"metadata": {"name": form.namespace}})
        document = _pod_document(form, template)
        for index in range(form.count):
            self._store.load([document])
            await _let_others_run(index)
        return done(f"added {counted(form.count, 'pod')}", form.count)

    def _check_pods(self, form: _Pods) -> None:
        for where, text, resource in (
            ("namespace", form.namespace, NAMESPACES),
            ("name", form.name or form.template, PODS),
        ):
            if errors := [*name_errors(resource, text), *label_value_errors(text)]:
                raise wrong(f'"{text}": {errors[0]}', where)
        amounts = {"cpu": form.cpu, "memory": form.memory, **form.resources}
        for where, text in amounts.items():
            if text:
                _check_quantity(text, where)

    async def _add_nodes(self, body: JsonObject) -> JsonObject:
        form = form_of(_Nodes, body)
        try:
            shape = parse_shape(form.shape)
        except InputError as error:
            raise wrong(str(error), "shape") from error
        count = form.count if shape.count is None else shape.count
        if count > ADDED_MAX:
            raise wrong(f"count is {count}, expected at most {ADDED_MAX}", "shape")
        taken = {stored.name for stored in self._store.objects_of(NODES)}
        index = 0
        for number in range(count):
            while f"node-{index}" in taken:
                index += 1
            name = f"node-{index}"
            taken.add(name)
            self._store.load([node_document(name, index, shape)])
            await _let_others_run(number)
        return done(f"added {counted(count, 'node')}", count)

    async def _delete(self, body: JsonObject) -> JsonObject:
        form = form_of(_Named, body)
        resource = self._resource(form.kind)
        namespace = form.namespace if resource.namespaced else ""
        self._store.delete(resource, namespace, form.name)
        return done(f'deleted {form.kind} "{form.name}"', 1)

    async def _scale(self, body: JsonObject) -> JsonObject:
        form = form_of(_Scale, body)
        if form.kind not in SCALED_KINDS:
            raise wrong(f"{form.kind} is not scaled, only {', '.join(SCALED_KINDS)}", "kind")
        patch = {"spec": {"replicas": form.replicas}}
        self._store.patch(self._resource(form.kind), form.namespace, form.name, patch, "merge")
        return done(f'scaled {form.kind} "{form.name}" to {counted(form.replicas, "pod")}', 1)

    async def _release(self, body: JsonObject) -> JsonObject:
        """Remove all scheduling gates of a pod."""
        form = form_of(_Pod, body)
        patch: JsonObject = {"spec": {"schedulingGates": None}}
        self._store.patch(PODS, form.namespace, form.name, patch, "merge")
        return done(f'released "{form.name}"', 1)

    async def _apply(self, body: JsonObject) -> JsonObject:
        return apply_suggestion(self._store, form_of(SuggestionForm, body))

    async def _move(self, body: JsonObject) -> JsonObject:
        form = form_of(_Pod, body)
        return self._mover.move(form.namespace, form.name)

    def _resource(self, kind: str) -> ApiResource:
        for resource in self._store.resources:
            if resource.kind == kind:
                return resource
        raise wrong(f'there is no kind "{kind}"; kinds are written as in YAML: Pod', "kind")

    # --- nodes ---

    async def _cordon(self, body: JsonObject) -> JsonObject:
        name = form_of(_Node, body).node
        self._patch_node(name, {"spec": {"unschedulable": True}})
        return done(f'cordoned "{name}"', 1)

    async def _uncordon(self, body: JsonObject) -> JsonObject:
        name = form_of(_Node, body).node
        self._patch_node(name, {"spec": {"unschedulable": None}})
        return done(f'uncordoned "{name}"', 1)

    async def _drain(self, body: JsonObject) -> JsonObject:
        """Cordon, then evict what is not pinned to the node. Budgets may keep some pods there."""
        name = form_of(_Node, body).node
        self._patch_node(name, {"spec": {"unschedulable": True}})
        evicted = 0
        kept: list[str] = []
        for pod in list(self._store.objects_of(PODS)):
            if value_at(pod.document, "spec", "nodeName") != name or _is_pinned(pod.document):
                continue
            try:
                evict(self._store, pod, now=whole_seconds(self._clock.now_ns()))
                evicted += 1
            except ApiError as error:
                kept.append(f"{'/'.join(pod.key)}: {error}")
        message = f'drained "{name}": evicted {counted(evicted, "pod")}'
        if kept:
            message += f", {len(kept)} stay: {kept[0]}"
        return done(message, evicted)

    async def _fail(self, body: JsonObject) -> JsonObject:
        name = form_of(_Node, body).node
        self._patch_node(name, {"metadata": {"annotations": {KUBELET: STOPPED}}})
        return done(f'the kubelet of "{name}" is stopped; the node is lost after a while', 1)

    async def _repair(self, body: JsonObject) -> JsonObject:
        name = form_of(_Node, body).node
        self._patch_node(name, {"metadata": {"annotations": {KUBELET: None}}})
        return done(f'the kubelet of "{name}" runs again', 1)

    def _patch_node(self, name: str, patch: JsonObject) -> None:
        self._store.patch(NODES, "", name, patch, "merge")

    # --- the whole cluster ---

    async def _plan(self, body: JsonObject) -> JsonObject:
        # Imported when it is asked for: a demo starts without it.
        from kubestow.simulator.live.plan_form import PlanForm, plan_of

        return plan_of(self._store, self._clock, self._setup, form_of(PlanForm, body))

    async def _load(self, body: JsonObject) -> JsonObject:
        form = form_of(_Text, body)
        scenario = scenario_in(form.text, form.name or TEXT_NAME)
        if scenario is None:
            return self._replace(_documents(form))
        answer = self._replace(scenario.documents)
        self._scenarios.play(scenario)
        return {**answer, "message": f'{answer["message"]}; the scenario "{scenario.name}" begins'}

    def _replace(self, documents: Sequence[Document]) -> JsonObject:
        """Put these objects in the place of all that are there."""
        if all(self._stored_as(one.raw) is None for one in documents):
            raise wrong("no object in the text is of a kind that this cluster has", "text")
        # What cannot be loaded is found before anything is deleted.
        load_cluster_files(MemoryCluster(self._clock, namespace_lifecycle=True), documents)
        self._before_load()
        self._scenarios.stop()
        self._mover.stop()
        self._clear()
        missing = [one for one in documents if not self._has(one.raw)]
        report = load_cluster_files(self._store, missing)
        message = f"loaded {counted(report.object_count, 'object')}"
        if report.ignored:
            message += f", left out {', '.join(sorted(report.ignored))}"
        return done(message, report.object_count)

    def _clear(self) -> None:
        for name in _REPLACED:
            resource = self._store.resources.named(name)
            for stored in list(self._store.objects_of(resource)):
                with suppress(NotFoundError):
                    self._store.delete(resource, *stored.key, grace_period_s=0)

    def _has(self, document: JsonObject) -> bool:
        """Whether an object of this name is there, such as a namespace."""
        resource = self._stored_as(document)
        name: str = value_at(document, "metadata", "name") or ""
        if resource is None:
            return False
        namespace = namespace_in(self._store, document)
        return self._store.find(resource, namespace, name) is not None

    def _stored_as(self, document: JsonObject) -> ApiResource | None:
        """None for a kind that the server does not have."""
        try:
            kind = document.get("apiVersion", ""), document.get("kind", "")
            return self._store.served.of_kind(*kind).stored
        except NotFoundError:
            return None

    async def _save(self, body: JsonObject) -> JsonObject:
        form_of(EmptyForm, body)
        content, report = saved_content(self._store)
        answer = done(f"saved {counted(report.object_count, 'object')}", report.object_count)
        return {**answer, "text": content.decode()}


async def _let_others_run(index: int) -> None:
    """The loop handles other work after some writes."""
    if index % _BURST == _BURST - 1:
        await asyncio.sleep(0)


def _documents(form: _Text) -> list[Document]:
    documents = documents_in(form.text.encode(), name=form.name or TEXT_NAME)
    if not documents:
        raise wrong("there is no object in the text", "text")
    return documents


def _pod_document(form: _Pods, template: PodTemplate) -> JsonObject:
    choice = TemplateChoice(
        cpu=form.cpu,
        memory=form.memory,
        resources=form.resources,
        priority=form.priority,
        node_selector=form.node_selector,
        run_seconds=form.run_seconds,
    )
    return pod_document(form.name or form.template, form.namespace, choice, template)


def _check_quantity(text: str, where: str) -> None:
    try:
        is_wrong = parse_quantity(text) < parse_quantity(0)
    except ValueError:
        is_wrong = True
    if is_wrong:
        raise wrong(f'"{text}" is no amount, expected one such as 500m, 2 or 4Gi', where)


def _is_pinned(pod: JsonObject) -> bool:
    owners = objects_in(value_at(pod, "metadata", "ownerReferences"))
    return any(owner.get("kind") == "DaemonSet" and owner.get("controller") for owner in owners)


def _refused(message: str, error: ApiError) -> ApiError:
    refusal = ApiError(message, code=error.code, reason=error.reason)
    refusal.causes = error.causes
    return refusal
