"""Kubernetes objects as frozen structs, and what is derived from them: values, no state, no I/O.

The objects: `meta`, `pod`, `node`, `workload`, `storage`, `coordination`. How they are read and
written: `decode`, `files`. What follows from them: `quantity`, `resources`, `requests`, `qos`;
`labels`, `node_selector`, `taints`, `ports`, `images`, `topology`; `owners`, `disruption`,
`importance`, `declared_features`; and `pod_info`, a pod together with these values.
"""

from kubestow.api.labels import Selector
from kubestow.api.meta import ApiObject, ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.quantity import Quantity

__all__ = ["ApiObject", "Node", "ObjectMeta", "Pod", "PodInfo", "Quantity", "Selector"]
