"""What would make a pod fit: single changes of the pod, a node, a volume or others, each tried.

`find_suggestions` is the entry. It reads what every filter says about every node (`stuck_pod`),
derives changes from that (one module per subject), runs the scheduling cycle with each of them
made, and keeps those with which the pod is placed, the smallest first (`remedy`). `patches` writes
them as JSON Patch, for the workload that owns the pod (`owners`), `commands` as commands of
kubectl; `apply` makes them in manifests.
"""

from kubestow.explain.suggestions.new_node import OfferedNode
from kubestow.explain.suggestions.search import SUGGESTIONS_MAX, find_suggestions, with_suggestions

__all__ = ["SUGGESTIONS_MAX", "OfferedNode", "find_suggestions", "with_suggestions"]
