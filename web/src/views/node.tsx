// One node: how full it is, what runs on it, and in a demo what can be done to it.

import { useMemo } from "preact/hooks";

import { conditionOf, useOf } from "../map/describe";
import type { Shown } from "../model/live";
import { NodeActions } from "../forms/node_actions";
import { plural } from "../widgets/format";
import { VirtualList } from "../widgets/virtual_list";
import { Fact } from "./explanation";
import { useDocument } from "./loading";
import { Manifest } from "./object";
import { openPod, PodLine } from "./queue";
import { OpenedHead } from "./side";

interface Props extends Shown {
  name: string;
}

interface NodeDocument {
  labels: Record<string, string>;
  conditions: { type: string; status: string; reason: string; message: string }[];
  devices: { devices: NodeDevice[]; count: number; used: number };
}

interface NodeDevice {
  driver: string;
  pool: string;
  name: string;
  tainted: boolean;
  claims: string[];
  pods: string[];
}

export function NodeView({ cluster, version, name }: Props) {
  const { nodes, words } = cluster;
  const row = nodes.byName.get(name);
  const pods = useMemo(() => (row === undefined ? [] : cluster.podsOn(row)), [cluster, version, row]);
  if (row === undefined) {
    return (
      <>
        <OpenedHead kind="Node" title={name} />
        <p class="nothing">The cluster has no node of this name.</p>
      </>
    );
  }
  const condition = conditionOf(cluster, row);
  return (
    <>
      <OpenedHead
        kind="Node"
        title={name}
        badge={<span class={`state ${condition.replace(" ", "-")}`}>{condition}</span>}
      />
      <div class="detail" tabIndex={0} role="region" aria-label={`Node ${name}`}>
        <NodeActions cluster={cluster} version={version} row={row} />
        <h3>Requested</h3>
        <ul class="bars">
          {words.resources.map((resource, index) =>
            nodes.allocatable[row][index] ? (
              <li class="bar-row" key={resource.name}>
                <span class="name clip">{resource.name}</span>
                <span class="track" aria-hidden="true">
                  <i class="use" style={{ width: `${Math.min(100, 100 * nodes.share(row, index))}%` }} />
                </span>
                <span>{useOf(cluster, row, index)}</span>
              </li>
            ) : null,
          )}
        </ul>
        <dl class="facts-list">
          {words.groupings.map((key, index) =>
            nodes.groups[row][index] ? (
              <Fact key={key} name={key}>
                {nodes.groups[row][index]}
              </Fact>
            ) : null,
          )}
          {nodes.taints[row].length > 0 && <Fact name="Taints">{nodes.taints[row].join(", ")}</Fact>}
        </dl>
        <NodeDocumentView name={name} again={`${nodes.unschedulable[row]} ${nodes.ready[row]} ${nodes.taints[row].join()} ${pods.length}`} />
        <h3>{plural(pods.length, "pod")}</h3>
        <div class="fixed-list">
          <VirtualList
            label={`Pods on ${name}`}
            count={pods.length}
            rowHeight={26}
            empty="No pod is on this node"
            onActivate={(index) => openPod(cluster.pods.key[pods[index]])}
            row={(index) => <PodLine cluster={cluster} version={version} row={pods[index]} />}
          />
        </div>
      </div>
    </>
  );
}

// What the rows do not have: all labels, conditions, YAML.
function NodeDocumentView({ name, again }: { name: string; again: unknown }) {
  const path = `nodes/${encodeURIComponent(name)}`;
  const { value, error } = useDocument<NodeDocument>(path, again);
  const labels = Object.entries(value?.labels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const problems = (value?.conditions ?? []).filter(({ type, status }) => (type === "Ready") !== (status === "True"));
  return (
    <>
      {error && <p class="error">{error}</p>}
      {problems.map((condition) => (
        <p class="mistake" key={condition.type}>
          <b>
            {condition.type}: {condition.status}
          </b>{" "}
          {condition.message || condition.reason}
        </p>
      ))}
      {labels.length > 0 && (
        <details>
          <summary>
            <span>Labels</span>
            <b class="number">{labels.length}</b>
          </summary>
          <div class="chips">
            {labels.map(([key, text]) => (
              <code key={key}>
                {key}={text}
              </code>
            ))}
          </div>
        </details>
      )}
      {value && value.devices.count > 0 && <Devices {...value.devices} />}
      <Manifest path={`${path}/yaml`} again={again} label={`the YAML of ${name}`} />
    </>
  );
}

// Devices of the node that claims can have, and which pods have them.
function Devices({ devices, count: total, used }: NodeDocument["devices"]) {
  return (
    <details open={total <= 16}>
      <summary>
        <span>Devices</span>
        <span>
          <b class="number">{used}</b> <span class="faint">of {total} in use</span>
        </span>
      </summary>
      <ul class="event-list devices">
        {devices.map((device) => (
          <li key={`${device.driver} ${device.pool} ${device.name}`}>
            <span class="event-head">
              <b>{device.name}</b>
              <span class="faint">
                {device.driver}
                {device.tainted && " · tainted"}
              </span>
            </span>
            <span>
              {device.claims.length === 0 && <span class="faint">free</span>}
              {device.claims.length > 0 && <span class="faint">claim {device.claims.join(", ")}: </span>}
              {device.pods.map((key) => (
                <button class="link" key={key} onClick={() => openPod(key)}>
                  {key}
                </button>
              ))}
            </span>
          </li>
        ))}
        {total > devices.length && <li class="faint">and {total - devices.length} more</li>}
      </ul>
    </details>
  );
}
