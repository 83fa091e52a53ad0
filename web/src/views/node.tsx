// One node: how full it is, what runs on it, and in a demo what can be done to it.

import { useMemo } from "preact/hooks";

import { conditionOf, useOf } from "../map/describe";
import type { Shown } from "../model/live";
import { NodeActions } from "../forms/node_actions";
import { plural } from "../widgets/format";
import { VirtualList } from "../widgets/virtual_list";
import { Fact } from "./explanation";
import { openPod, PodLine } from "./queue";
import { OpenedHead } from "./side";

interface Props extends Shown {
  name: string;
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
