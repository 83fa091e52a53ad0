// The last pods that were evicted, and where they went. On the map: dashed where they were, framed where their
// replacements are.

import { useEffect } from "preact/hooks";

import { Verdict } from "../map/draw";
import type { Shown } from "../model/live";
import { verdicts } from "../model/verdicts";
import { timeOfDay } from "../widgets/format";
import { NodeLink } from "./explanation";
import { useDocument } from "./loading";
import { openPod, splitKey } from "./queue";

interface Eviction {
  id: number;
  time: number;
  pod: string;
  node: string;
  priority: number;
  reason: string;
  message: string;
  replacement: string;
  toNode: string;
}

const EVERY_MS = 2000; // of the cluster's time
const SHOWN_MAX = 200;
const MARKED_MAX = 50;
const REASON: Record<string, string> = {
  PreemptionByScheduler: "for a more important pod",
  EvictionByEvictionAPI: "by a drain or another client",
  DeletionByTaintManager: "by a taint of the node",
  DeletionByPodGC: "its node is gone",
  TerminationByKubelet: "by the kubelet",
};

export function Evictions({ cluster }: Shown) {
  const again = Math.floor(cluster.state.clock.time / EVERY_MS);
  const { value, error } = useDocument<{ evictions: Eviction[] }>("evictions", again);
  const evictions = (value?.evictions ?? []).slice(0, SHOWN_MAX);
  useEffect(() => {
    const marks = new Map<string, number>();
    for (const each of evictions.slice(0, MARKED_MAX)) {
      marks.set(each.node, Verdict.Near);
      if (each.toNode) marks.set(each.toNode, Verdict.Chosen);
    }
    verdicts.value = marks.size > 0 ? marks : null;
    return () => {
      verdicts.value = null;
    };
  }, [value]);
  return (
    <div class="detail" tabIndex={0} role="region" aria-label="Evictions">
      {error && <p class="error">{error}</p>}
      {value && evictions.length === 0 && <p class="nothing">No pod was evicted since the page follows.</p>}
      {evictions.length > 0 && (
        <p class="faint legend-note">On the map: dashed where pods were, framed where their replacements are.</p>
      )}
      <ul class="event-list">
        {evictions.map((each) => (
          <li key={each.id}>
            <span class="event-head">
              <b>{splitKey(each.pod)[1]}</b>
              <span class="faint">{timeOfDay(each.time / 1000)}</span>
            </span>
            <span title={each.message}>
              from <NodeLink name={each.node} /> {REASON[each.reason] ?? each.reason}
              {each.priority !== 0 && <span class="faint">, priority {each.priority}</span>}
            </span>
            {each.toNode && (
              <span>
                now{" "}
                <button class="link" onClick={() => openPod(each.replacement)}>
                  {splitKey(each.replacement)[1]}
                </button>{" "}
                on <NodeLink name={each.toNode} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
