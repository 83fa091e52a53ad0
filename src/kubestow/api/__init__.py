"""Kubernetes objects as frozen structs, and what is derived from them: values, no state, no I/O.

The objects: `meta`, `pod`, `node`, `workload`, `storage`, `coordination`. How they are read and
written: `decode`, `files`. What follows from them: `quantity`, `resources`, `requests`, `qos`;
`labels`, `node_selector`, `taints`, `ports`, `topology`; `owners`, `disruption`, `importance`,
`declared_features`; and `pod_info`, a pod together with these values.

Nothing is imported here: who reads a duration does not need the rest.
"""
