"""Pods and nodes that the forms of the page offer, and that the living workload is made of.

Each template shows one rule of the scheduler: spreading, avoiding, tolerating, evicting, waiting.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.api.topology import HOSTNAME_LABEL, ZONE_LABEL
from kubestow.simulator.pretended_process import RUN_SECONDS

NAMESPACE: Final = "demo"
GPU: Final = "nvidia.com/gpu"
GPU_TAINT: Final = "gpu"
BATCH: Final = "batch"
URGENT: Final = "urgent"


class PodTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """`spec` is what its pods have besides containers."""

    title: str
    cpu: str
    memory: str
    resources: Mapping[str, str] = {}
    spec: JsonObject = {}


class TemplateChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What a form may set otherwise than the template; None and empty leave it."""

    cpu: str | None = None
    memory: str | None = None
    resources: Mapping[str, str] = {}
    priority: str | None = None
    node_selector: Mapping[str, str] = {}
    run_seconds: float | None = None


def _app(name: str) -> JsonObject:
    return {"matchLabels": {"app": name}}


TEMPLATES: Final[Mapping[str, PodTemplate]] = {
    "web": PodTemplate(
        title="web server: spreads over the zones",
        cpu="500m",
        memory="512Mi",
        spec={
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": ZONE_LABEL,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": _app("web"),
                }
            ]
        },
    ),
    "cache": PodTemplate(
        title="cache: at most one on a node",
        cpu="250m",
        memory="2Gi",
        spec={
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": _app("cache"), "topologyKey": HOSTNAME_LABEL}
                    ]
                }
            }
        },
    ),
    "batch": PodTemplate(
        title="batch: fills the rest, and is evicted first",
        cpu="1",
        memory="1Gi",
        spec={"priorityClassName": BATCH},
    ),
    "urgent": PodTemplate(
        title="urgent: evicts less important pods",
        cpu="2",
        memory="2Gi",
        spec={"priorityClassName": URGENT},
    ),
    "training": PodTemplate(
        title="training: needs a GPU, whose taint it tolerates",
        cpu="1",
        memory="4Gi",
        resources={GPU: "1"},
        spec={"tolerations": [{"key": GPU_TAINT, "operator": "Exists"}]},
    ),
    "database": PodTemplate(title="database: needs a large node", cpu="12", memory="48Gi"),
    "scratch": PodTemplate(
        title="scratch: needs a node with an NVMe disk",
        cpu="500m",
        memory="1Gi",
        spec={"nodeSelector": {"disk": "nvme"}},
    ),
    "gated": PodTemplate(
        title="gated: held back until its gate is removed",
        cpu="500m",
        memory="512Mi",
        spec={"schedulingGates": [{"name": "kubestow.io/demo"}]},
    ),
}

SHAPES: Final[Mapping[str, str]] = {
    "small": "cpu=2,memory=8Gi,label.pool=small",
    "usual": "cpu=4,memory=16Gi,label.pool=usual",
    "large": "cpu=16,memory=64Gi,label.pool=large",
    "NVMe disk": "cpu=4,memory=16Gi,label.pool=disk,label.disk=nvme",
    "GPU": f"cpu=8,memory=64Gi,{GPU}=4,label.pool=gpu",
}


def pod_spec(template: PodTemplate, app: str, choice: TemplateChoice) -> JsonObject:
    requests = {
        "cpu": choice.cpu or template.cpu,
        "memory": choice.memory or template.memory,
        **template.resources,
        **choice.resources,
    }
    extended = {name: amount for name, amount in requests.items() if "/" in name}
    container = {
        "name": "main",
        "image": f"registry.example/{app}:v1",
        "resources": {"requests": requests, "limits": extended},
    }
    spec: JsonObject = {
        "containers": [container],
        "terminationGracePeriodSeconds": 2,
        **template.spec,
    }
    if choice.priority:
        spec["priorityClassName"] = choice.priority
    if choice.node_selector:
        selector: JsonObject = template.spec.get("nodeSelector", {})
        spec["nodeSelector"] = {**selector, **choice.node_selector}
    if choice.run_seconds is not None:
        spec["restartPolicy"] = "Never"
    return spec


def pod_metadata(app: str, choice: TemplateChoice) -> JsonObject:
    metadata: JsonObject = {"labels": {"app": app}}
    if choice.run_seconds is not None:
        metadata["annotations"] = {RUN_SECONDS: f"{choice.run_seconds:g}"}
    return metadata


def pod_document(
    app: str, namespace: str, choice: TemplateChoice, template: PodTemplate
) -> JsonObject:
    """A pod whose name the server completes."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{app}-",
            "namespace": namespace,
            **pod_metadata(app, choice),
        },
        "spec": pod_spec(template, app, choice),
    }
