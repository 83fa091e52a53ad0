// A node in words: for the tip under the pointer, for screen readers, and for the table.

import type { Cluster } from "../model/cluster";
import { amount, percent, plural } from "../widgets/format";

export function conditionOf(cluster: Cluster, row: number): string {
  const { nodes } = cluster;
  if (!nodes.ready[row]) return "not ready";
  return nodes.unschedulable[row] ? "cordoned" : "ready";
}

export function useOf(cluster: Cluster, row: number, resource: number): string {
  const { nodes } = cluster;
  const { unit } = cluster.words.resources[resource];
  const allocatable = nodes.allocatable[row][resource] ?? 0;
  if (allocatable === 0) return "none";
  const requested = nodes.requested[row][resource] ?? 0;
  return `${percent(requested / allocatable)} (${amount(requested, unit)} of ${amount(allocatable, unit)})`;
}

export function describe(cluster: Cluster, row: number, resource: number): string {
  const { nodes, words } = cluster;
  const parts = [nodes.name[row], `${words.resources[resource].name} ${useOf(cluster, row, resource)}`];
  parts.push(plural(nodes.podCount[row], "pod"));
  const condition = conditionOf(cluster, row);
  if (condition !== "ready") parts.push(condition);
  return parts.join(", ");
}
