// The nodes: as a map or as a table, by any resource, in groups by any label that the server offers.

import { useEffect, useRef } from "preact/hooks";

import { Verdict } from "../map/draw";
import { HeatMap } from "../map/heat_map";
import { paletteOf, STEPS } from "../map/palette";
import { NodeTable } from "../map/table";
import type { Cluster } from "../model/cluster";
import { isPast } from "../model/live";
import type { Shown } from "../model/live";
import { route } from "../model/route";
import { chooseGrouping, chooseResource, chooseView, grouping, mapView, resource, theme } from "../model/settings";
import { NodeSearch, useFoundNodes } from "./node_search";
import { verdicts } from "../model/verdicts";
import { count, dateAndTime, percent } from "../widgets/format";

const ZONE = "topology.kubernetes.io/zone";
const SHORT: Record<string, string> = {
  [ZONE]: "zone",
  "topology.kubernetes.io/region": "region",
  "node.kubernetes.io/instance-type": "instance type",
  "kubernetes.io/arch": "architecture",
  "kubernetes.io/os": "operating system",
};

export function NodesPanel({ cluster, version }: Shown) {
  const { resources, groupings } = cluster.words;
  const chosen = Math.max(0, resources.findIndex((entry) => entry.name === resource.value));
  useEffect(() => {
    // The stored choice may be of another cluster.
    if (grouping.value !== "" && !groupings.includes(grouping.value)) chooseGrouping(usualGrouping(cluster));
  }, [cluster]);
  const isMap = mapView.value === "map";
  const found = useFoundNodes(cluster);
  return (
    <section class="panel nodes" aria-labelledby="nodes-title">
      <div class="panel-head">
        <h2 id="nodes-title">Nodes</h2>
        <span class="faint">
          <b class="number">{count(cluster.nodes.count)}</b> · {totalUse(cluster, chosen)}
        </span>
        <span class="spacer" />
        <label class="inline">
          Colour
          <select value={resources[chosen]?.name} onChange={(event) => chooseResource(event.currentTarget.value)}>
            {resources.map((entry) => (
              <option key={entry.name} value={entry.name}>
                {entry.name}
              </option>
            ))}
          </select>
        </label>
        <label class="inline">
          Group
          <select value={grouping.value} onChange={(event) => chooseGrouping(event.currentTarget.value)}>
            {groupings.map((key) => (
              <option key={key} value={key}>
                {SHORT[key] ?? key}
              </option>
            ))}
            <option value="">none</option>
          </select>
        </label>
        <span class="joined" role="group" aria-label="View">
          <button aria-pressed={isMap} onClick={() => chooseView("map")}>
            Map
          </button>
          <button aria-pressed={!isMap} onClick={() => chooseView("table")}>
            Table
          </button>
        </span>
      </div>
      <NodeSearch found={found} />
      {isPast.value && (
        <p class="past-note">As it was at {dateAndTime(cluster.state.clock.time / 1000)}</p>
      )}
      {cluster.nodes.count === 0 ? (
        <p class="nothing">The cluster has no nodes.</p>
      ) : isMap ? (
        <>
          <HeatMap cluster={cluster} version={version} resource={chosen} found={found} />
          <Legend name={resources[chosen]?.name ?? ""} />
        </>
      ) : (
        <NodeTable cluster={cluster} version={version} found={found} />
      )}
    </section>
  );
}

// Zones if there are any, else the label that splits the nodes into the fewest groups, if one does.
function usualGrouping(cluster: Cluster): string {
  const { groupings } = cluster.words;
  const values = groupings.map((_, index) => new Set(cluster.nodes.groups.map((groups) => groups[index])).size);
  const zone = groupings.indexOf(ZONE);
  if (zone >= 0 && values[zone] > 1) return ZONE;
  const splitting = groupings.map((key, index) => ({ key, count: values[index] })).filter(({ count }) => count > 1);
  return splitting.sort((a, b) => a.count - b.count)[0]?.key ?? "";
}

function totalUse(cluster: Cluster, resource: number): string {
  let requested = 0;
  let allocatable = 0;
  for (const row of cluster.nodes.rows.of.values()) {
    requested += cluster.nodes.requested[row][resource] ?? 0;
    allocatable += cluster.nodes.allocatable[row][resource] ?? 0;
  }
  const name = cluster.words.resources[resource]?.name ?? "";
  return allocatable > 0 ? `${percent(requested / allocatable)} of ${name}` : `no ${name}`;
}

function Legend({ name }: { name: string }) {
  const isMoves = route.value.view === "evictions" || route.value.view === "group";
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const context = canvas.current!.getContext("2d")!;
    paletteOf(theme.value).fill.forEach((color, step) => {
      context.fillStyle = color;
      context.fillRect(step, 0, 1, 1);
    });
  }, [theme.value]);
  return (
    <div class="legend">
      <span class="ramp">
        <canvas ref={canvas} width={STEPS} height={1} aria-hidden="true" />
        <span class="ticks">
          <span>0 %</span>
          <span>50</span>
          <span>100 % {name}</span>
        </span>
      </span>
      <span>
        <svg viewBox="0 0 12 12" aria-hidden="true">
          <path d="M2 0h10v10z" fill="var(--alert-mark)" />
        </svg>
        cordoned
      </span>
      <span>
        <svg viewBox="0 0 12 12" aria-hidden="true">
          <path d="M1 1l10 10M11 1L1 11" stroke="var(--alert-mark)" stroke-width="2" />
        </svg>
        not ready
      </span>
      {verdicts.value && isMoves && <span>dashed: evicted from here; framed: placed here</span>}
      {verdicts.value && !isMoves && <span>faded: does not fit the opened pod</span>}
      {verdicts.value && !isMoves && [...verdicts.value.values()].includes(Verdict.Near) && (
        <span>
          <svg viewBox="0 0 12 12" aria-hidden="true">
            <rect x="1" y="1" width="10" height="10" fill="none" stroke="var(--focus)" stroke-width="2" stroke-dasharray="3 2" />
          </svg>
          almost fits
        </span>
      )}
    </div>
  );
}
