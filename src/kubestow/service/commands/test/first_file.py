"""`kubestow test --init`: a first test from manifests or a cluster."""

import os
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import value_at
from kubestow.errors import InputError
from kubestow.files import keeping
from kubestow.service.commands.cluster_input import InputRequest, load_input
from kubestow.service.output import stderr
from kubestow.simulator.input.saving import save_input
from kubestow.simulator.placement_tests.document import SUFFIX
from kubestow.simulator.scenario.document import Chart
from kubestow.simulator.scenario.rendering import rendered_chart, rendered_kustomization

_APPLY: Final = "apply"
_CHART: Final = "chart"
_REPLICATED: Final = ("Deployment", "ReplicaSet", "StatefulSet")
_TEXT: Final = """\
# A placement test: kubestow test {name}
apiVersion: kubestow.dev/v1alpha1
kind: PlacementTest
cluster:
{cluster}
{given}expect:
  - placed: all
  - preempted: none
{more}# Every zone fails in turn, and the expectations must hold each time. Others: node, a label of
# nodes; {{drain: node}}, {{upgrade: node}}, {{fail: node, atOnce: 2}}.
# forEach: zone
"""
_NODES: Final = """\
  # Nodes like those of your cluster; it can be saved: kubestow test --init FILE --from-cluster
  nodes:
    - name: node
      count: 6
      capacity: {cpu: 8, memory: 32Gi}
      zones: [zone-a, zone-b, zone-c]
"""


def write_first_file(path: Path, request: InputRequest) -> int:
    """Write the test, and the cluster that it names beside it; the exit code."""
    if not path.name.endswith(SUFFIX):
        raise InputError(f'--init is "{path}", expected a name that ends with {SUFFIX}')
    keeping.require_new(path, "--init", force=request.force)
    content = _content(path, request, _given(request))
    try:
        keeping.write(path, content, force=request.force)
    except OSError as error:
        raise InputError(f'cannot write "{path}": {error.strerror}') from error
    stderr().print(f"{path} is written; run it: kubestow test {path}")
    return 0


class _Given(NamedTuple):
    """What -f names: files and folders with manifests, those that are rendered with their step, and
    the objects of all."""

    plain: list[str]
    rendered: dict[str, str]
    documents: list[Document]


def _given(request: InputRequest) -> _Given:
    steps = {file: _step_of(file) for file in request.files}
    given = _Given([file for file in steps if steps[file] == _APPLY], {}, [])
    if given.plain:
        files = msgspec.structs.replace(
            request, files=given.plain, is_live=False, kubeconfig="", context=""
        )
        given.documents.extend(load_input(files, command="test", makes_pods=False).documents)
    for file, step in steps.items():
        if step != _APPLY:
            given.rendered[file] = step
            given.documents.extend(_rendered(file, step))
    return given


def _rendered(file: str, step: str) -> list[Document]:
    """The objects of a chart or a kustomization; the test is also written if they are not known."""
    try:
        if step == _CHART:
            return rendered_chart(Path(file), [], Chart(path=file))
        return rendered_kustomization(Path(file))
    except InputError as error:
        stderr().print(f"{file} is not rendered yet: {error}")
        return []


def _content(path: Path, request: InputRequest, given: _Given) -> str:
    has_nodes = any(document.raw["kind"] == "Node" for document in given.documents)
    cluster = _NODES.rstrip()
    if request.is_live:
        live = msgspec.structs.replace(request, files=())
        saved = path.with_name(path.name.removesuffix(SUFFIX) + ".cluster.json")
        documents = load_input(live, command="test", makes_pods=False).documents
        save_input(documents, saved, force=request.force)
        cluster = f"  files: [{saved.name}]"
    elif has_nodes:
        files = ", ".join(_relative(path, file) for file in given.plain)
        cluster = f"  files: [{files}]"
    steps = "".join(_step(path, file, step) for file, step in given.rendered.items())
    if request.is_live or not has_nodes:
        steps = "".join(_step(path, file, _APPLY) for file in given.plain) + steps
    more = "".join(_spread(document.raw) for document in given.documents)
    if steps:
        steps = f"given:\n{steps}"
    return _TEXT.format(name=path, cluster=cluster, given=steps, more=more)


def _step(path: Path, file: str, step: str) -> str:
    name = _relative(path, file)
    return f"  - {step}: {{path: {name}}}\n" if step == _CHART else f"  - {step}: {name}\n"


def _step_of(file: str) -> str:
    """A chart and a kustomization are rendered, all others are applied as they are."""
    if os.path.isfile(os.path.join(file, "Chart.yaml")):
        return _CHART
    is_kustomization = os.path.isfile(os.path.join(file, "kustomization.yaml"))
    return "kustomize" if is_kustomization else _APPLY


def _relative(path: Path, file: str) -> str:
    return os.path.relpath(file, path.parent)


def _spread(raw: JsonObject) -> str:
    """An expectation that a workload with several pods may need, to be switched on."""
    replicas = value_at(raw, "spec", "replicas") or 1
    if raw["kind"] not in _REPLICATED or replicas < 2:
        return ""
    owner = f"{raw['kind']}/{value_at(raw, 'metadata', 'name')}"
    return f"  # - spread: {{pods: {owner}, over: topology.kubernetes.io/zone, maxSkew: 1}}\n"
