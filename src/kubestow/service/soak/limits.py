"""The limits of what is kept, by the names that `kept` finds.

What is not here is as large as the cluster or the work in progress, or says its limit itself
(functions that remember).
"""

from collections.abc import Mapping

from kubestow.api.disruption import COVERED_MAX
from kubestow.apiserver.http.streaming import KEPT_MAX as LINES_MAX
from kubestow.cache.change_log import REORDERS_KEPT
from kubestow.cache.numbering import numbered_max
from kubestow.cache.resource_columns import LAID_OUT_MAX
from kubestow.cluster.events import BUFFER_MAX
from kubestow.cluster.http.pool import CONNECTIONS_MAX
from kubestow.cluster.http.undecodable import LOGGED_MAX
from kubestow.engine.equivalence.records import (
    FRAME_NODE_BYTES,
    PLACES_MAX,
    RECORD_NODE_BYTES,
    kept_max,
)
from kubestow.explain.history import PODS_MAX as ATTEMPTS_MAX
from kubestow.framework.faults import LOGGED_FAULTS_MAX
from kubestow.index.devices.selectors import MATCHES_MAX
from kubestow.index.topology.counts import KEYS_MAX
from kubestow.index.topology.domains import VARIANTS_MAX
from kubestow.index.topology.ledger import TALLIES_MAX
from kubestow.index.tracked import LABEL_COLUMNS_MAX, TRACKED_MAX
from kubestow.plugins.dynamic_resources.answers import CLAIM_SETS_MAX
from kubestow.plugins.inter_pod_affinity.terms import RESOLVED_MAX
from kubestow.plugins.pod_topology_spread.default_selectors import NAMESPACES_MAX, SELECTORS_MAX


def limits(*, nodes: int, history: int) -> Mapping[str, int]:
    """The largest size of each container in a cluster of this many nodes; `history` is that of its
    server."""
    numbered = numbered_max(nodes)
    frames, records = kept_max(nodes, FRAME_NODE_BYTES), kept_max(nodes, RECORD_NODE_BYTES)
    spread = "plugins.pod_topology_spread.default_selectors"
    return {
        f"{spread}.DefaultSelectors._namespaces": NAMESPACES_MAX,
        "api.disruption.BudgetTable._covering": COVERED_MAX,
        # Those that frames and records refer to; a waiting pod has at most one more.
        "api.pod_shape._FRAMES": frames,
        "api.pod_shape._SHAPES": records,
        "apiserver.http.streaming.EventEncoder._lines": LINES_MAX,
        "apiserver.store.Collection._history": history,
        "cache.change_log.ChangeLog._reorders": REORDERS_KEPT,
        "cache.columns.TaintSets._ids": numbered,
        "cache.columns.TaintSets.lists": numbered,
        "cache.resource_columns.ResourceColumns._laid_out": LAID_OUT_MAX,
        "cluster.events.EventRecorder._waiting": BUFFER_MAX,
        "cluster.http.pool.ConnectionPool._busy": CONNECTIONS_MAX,
        "cluster.http.pool.ConnectionPool._idle": CONNECTIONS_MAX,
        "cluster.http.undecodable.UndecodableObjects._logged": LOGGED_MAX,
        "engine.equivalence.records.Records._frames": frames,
        "engine.equivalence.records.Records._places": PLACES_MAX,
        "engine.equivalence.records.Records._records": records,
        "explain.history.AttemptHistory._kept": ATTEMPTS_MAX,
        "framework.faults.FaultLog._logged": LOGGED_FAULTS_MAX,
        "index.devices.inventory.DeviceContent.matches": MATCHES_MAX,
        "index.devices.per_node.NodeSlots._by_name": numbered,
        "index.devices.per_node.NodeSlots._nodes": numbered,
        "index.topology.counts.TopologyCounts._keys": KEYS_MAX,
        "index.topology.domains.TopologyKey._variants": VARIANTS_MAX,
        "index.topology.ledger.PodLedger._tallies": TALLIES_MAX,
        "index.topology.ledger.TermLedger._tallies": TALLIES_MAX,
        "index.tracked.LabelColumn._numbers": numbered,
        "index.tracked.LabelColumn.values": numbered,
        "index.tracked.LabelColumns._columns": LABEL_COLUMNS_MAX,
        "index.tracked.TrackedArrays._arrays": TRACKED_MAX,
        "plugins.dynamic_resources.answers.AnswerBook._answers": CLAIM_SETS_MAX,
        "plugins.inter_pod_affinity.terms.TermResolver._preferred": RESOLVED_MAX,
        "plugins.inter_pod_affinity.terms.TermResolver._required": RESOLVED_MAX,
        "plugins.pod_topology_spread.default_selectors.NamespaceServices._selectors": SELECTORS_MAX,
    }
