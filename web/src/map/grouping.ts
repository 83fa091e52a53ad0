// Which nodes are drawn together, and in what order.

import type { Cluster } from "../model/cluster";
import type { Group } from "./layout";

const names = new Intl.Collator("en", { numeric: true });

// `key` is a label of the node, or "" for all nodes in one group.
export function groupNodes(cluster: Cluster, key: string): Group[] {
  const { nodes } = cluster;
  const at = cluster.words.groupings.indexOf(key);
  const byLabel = new Map<string, number[]>();
  for (const row of nodes.rows.of.values()) {
    const label = at < 0 ? "" : (nodes.groups[row][at] ?? "");
    const rows = byLabel.get(label);
    if (rows) rows.push(row);
    else byLabel.set(label, [row]);
  }
  const rank = new Map<number, number>();
  sortedRows(cluster).forEach((row, index) => rank.set(row, index));
  return [...byLabel.entries()]
    .sort(([a], [b]) => Number(a === "") - Number(b === "") || names.compare(a, b))
    .map(([label, rows]) => ({
      label: label || (at < 0 ? "all nodes" : `without ${key}`),
      rows: Int32Array.from(rows.sort((a, b) => rank.get(a)! - rank.get(b)!)),
    }));
}

export function sortedRows(cluster: Cluster): number[] {
  const { nodes } = cluster;
  return [...nodes.rows.of.values()].sort((a, b) => names.compare(nodes.name[a], nodes.name[b]));
}
