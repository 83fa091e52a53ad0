// An explanation, as docs/reference/explanation.md has it: the part that the page shows.

export interface PodReference {
  namespace: string;
  name: string;
}

export interface PluginScore {
  raw: number;
  normalized: number;
  weight: number;
  weighted: number;
}

export interface NodeVerdict {
  name: string;
  verdict: "Feasible" | "Rejected" | "NotLookedAt" | "Error";
  plugin: string;
  code: string;
  reasons: string[];
  scores: Record<string, PluginScore>;
  total: number | null;
}

export interface Reason {
  plugin: string;
  code: string;
  reason: string;
  reasonCode: string;
  count: number;
  nodes: string[];
  evidence?: { text: string; groups: { nodes: string[]; count: number; text: string }[]; examined: number };
}

export interface ObjectPatch {
  apiVersion: string;
  kind: string;
  namespace: string;
  name: string;
  patch: { op: string; path: string; value?: unknown }[];
}

export interface Suggestion {
  kind: string;
  text: string;
  patches: ObjectPatch[];
  node: string;
  verified: boolean;
  commands: string[];
  effect: string;
  moved?: PodReference;
}

export interface NearMiss {
  node: string;
  distance: number;
  plugins: string[];
  text: string;
}

export interface Mistake {
  where: string;
  text: string;
}

export interface Explanation {
  pod: PodReference;
  outcome: "Scheduled" | "Unschedulable" | "Gated" | "Excluded" | "Error" | "Bound";
  node: string;
  message: string;
  nominatedNode: string;
  victims: (PodReference & { priority: number })[];
  nodes: NodeVerdict[];
  reasons: Reason[];
  waitingFor: { resource: string; action: string; plugins: string[] }[];
  suggestions: Suggestion[];
  summary: string;
  schedulerName: string;
  search?: { nodes: number; evaluated: number; feasible: number; wanted: number; end: string };
  choice?: {
    nextNode: string;
    margin: number;
    differences: { plugin: string; difference: number }[];
    tiedCount: number;
    tieBreak: string;
  };
  preemption?: { result: string; message: string; hopelessNodes: number; possibleNodes: number };
  asOfNow?: { outcome: string; node: string };
  nearest: NearMiss[];
  mistakes: Mistake[];
  group?: { namespace: string; name: string; minCount: number | null; fitting: number; message: string };
  attempt?: { at: string; attempts: number; place: string; nextTry: string };
}
