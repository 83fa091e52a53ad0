// The verdict on each node in the explanation that is open: the map marks nodes by it.

import { signal } from "@preact/signals";

import { Verdict } from "../map/draw";
import type { Explanation } from "./explanation";

export const verdicts = signal<Map<string, number> | null>(null);

export function markNodes(explanation: Explanation | null): void {
  if (!explanation || explanation.nodes.length === 0) {
    verdicts.value = null;
    return;
  }
  const marks = new Map<string, number>();
  for (const node of explanation.nodes) {
    marks.set(node.name, node.verdict === "Rejected" || node.verdict === "Error" ? Verdict.Rejected : Verdict.Feasible);
  }
  for (const near of explanation.nearest) marks.set(near.node, Verdict.Near);
  if (explanation.node) marks.set(explanation.node, Verdict.Chosen);
  verdicts.value = marks;
}
