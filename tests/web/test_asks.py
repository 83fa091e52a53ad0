"""What a pod asks for, in words; and objects as YAML without what may be secret."""

import msgspec
import yaml

from kubestow.api.decode import convert
from kubestow.api.pod import Pod
from kubestow.testing import make_node, make_pod
from kubestow.web.asks import TEXTS_MAX, asks_of
from kubestow.web.manifests import manifest_text

POD = """
metadata: {name: a, namespace: demo, labels: {app: web}}
spec:
  schedulingGates: [{name: hold}]
  nodeSelector: {disk: ssd}
  tolerations:
  - {key: gpu, operator: Exists, effect: NoSchedule}
  - {key: team, value: a}
  - {operator: Exists}
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - {key: zone, operator: In, values: [a, b]}
          - {key: arch, operator: NotIn, values: [arm64]}
          - {key: cores, operator: Gt, values: ["8"]}
        - matchExpressions: [{key: spare, operator: Exists}, {key: old, operator: DoesNotExist}]
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 7, preference: {matchExpressions: [{key: fast, operator: In, values: ["yes"]}]}}
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: zone, labelSelector: {matchLabels: {app: cache}}}
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 3
        podAffinityTerm:
          {topologyKey: host, labelSelector: {matchLabels: {app: web}}, namespaces: [x]}
  topologySpreadConstraints:
  - {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 3,
     labelSelector: {matchLabels: {app: web}}}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data-0}}
  - {name: config, configMap: {}}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: big-gpu}]
  containers: [{name: main, image: i, ports: [{hostPort: 80, containerPort: 80}]}]
"""


def test_all_that_a_pod_asks_for_is_named() -> None:
    asks = asks_of(convert(Pod, yaml.safe_load(POD)))
    assert {each.name: each.texts for each in asks} == {
        "Scheduling gates": ("hold",),
        "Node selector": ("disk=ssd",),
        "Node affinity": ("zone in a, b, arch not in arm64, cores > 8", "spare, no old"),
        "Preferred nodes": ("fast=yes (weight 7)",),
        "Tolerations": (
            "gpu:NoSchedule",
            "team=a",
            "any taint",
            "node.kubernetes.io/not-ready:NoExecute for 300 s",
        ),
        "Pod affinity": ("app=cache by zone",),
        "Pod anti-affinity": ("app=web by host, in x (preferred, weight 3)",),
        "Spread": ("app=web by zone, at most 2 apart (required), in 3 domains or more",),
        "Host ports": ("80/TCP",),
        "Volumes": ("data: claim data-0", "config: config map"),
        "Device claims": ("gpu: big-gpu",),
        "Labels": ("app=web",),
    }


def test_a_pod_with_many_labels_is_cut() -> None:
    labels = {f"key-{number:03}": "x" for number in range(TEXTS_MAX + 7)}
    (ask,) = asks_of(make_pod("a", labels=labels))
    assert (len(ask.texts), ask.more) == (TEXTS_MAX, 7)


def test_yaml_has_no_annotations() -> None:
    pod = make_pod("a", cpu="1")
    metadata = msgspec.structs.replace(pod.metadata, annotations={"last-applied": "secret"})
    text = manifest_text(msgspec.structs.replace(pod, metadata=metadata))
    assert "secret" not in text
    shown = yaml.safe_load(text)
    assert (shown["apiVersion"], shown["kind"], shown["metadata"]["name"]) == ("v1", "Pod", "a")
    assert shown["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert yaml.safe_load(manifest_text(make_node("n")))["kind"] == "Node"
