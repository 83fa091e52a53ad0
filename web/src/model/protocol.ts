// What the server sends, as docs/reference/page.md has it. Rows are lists, in the order written here.

export type NodeRow = [
  id: number,
  name: string,
  groups: string[],
  unschedulable: boolean,
  ready: boolean,
  taints: string[],
  allocatable: number[],
  requested: number[],
  created: number,
];

export type PodRow = [
  key: string,
  node: number,
  place: number,
  priority: number,
  owner: number,
  requests: number,
  reason: number,
  rejectors: number,
  terminating: boolean,
  created: number,
];

export type AttemptResult = "scheduled" | "unschedulable" | "error";

export type AttemptRow = [
  id: number,
  time: number,
  pod: string,
  node: string,
  result: AttemptResult,
  reason: number,
  durationMs: number,
  nominated: string,
  victims: number,
  owner: number,
];

// An attempt outside of states and batches: by name, and with the texts of its reason and its owner.
export interface Attempt {
  id: number;
  time: number;
  pod: string;
  node: string;
  result: AttemptResult;
  reason: string;
  durationMs: number;
  nominated: string;
  victims: number;
  owner: string; // Kind/name, or ""
}

export type SeriesPoint = [
  time: number,
  scheduled: number,
  unschedulable: number,
  errors: number,
  p50Ms: number,
  p99Ms: number,
  places: number[],
];

export type PluginTime = [point: string, plugin: string, calls: number, totalMs: number];

export interface Resource {
  name: string;
  unit: "milli" | "bytes" | "count";
}

export interface Words {
  resources: Resource[];
  groupings: string[];
  owners: string[];
  requests: number[][];
  reasons: string[];
  rejectors: string[];
}

export interface ClockState {
  time: number;
  speed: number;
  paused: boolean;
  canChange: boolean;
}

export interface QueueState {
  places: number[];
  rejectors: [rejectors: number, count: number][];
}

export interface Leader {
  elects: boolean;
  leads: boolean;
  identity: string;
}

export interface Counts {
  attempts: number;
  attemptsDropped: number;
  skipped: number;
  resets: number;
}

export interface SchedulerState {
  version: string;
  upstream: string;
  leader: Leader;
  profiles: { name: string; plugins: { name: string; points: string[]; weight: number }[] }[];
  config: string;
}

export interface State {
  seq: number;
  mode: "run" | "demo" | "recording";
  actions: string[];
  clock: ClockState;
  span: { begin: number; end: number };
  scheduler: SchedulerState;
  places: string[];
  words: Words;
  nodes: {
    id: number[];
    name: string[];
    groups: string[][];
    unschedulable: boolean[];
    ready: boolean[];
    taints: string[][];
    allocatable: number[][];
    requested: number[][];
    created: number[];
  };
  pods: {
    key: string[];
    node: number[];
    place: number[];
    priority: number[];
    owner: number[];
    requests: number[];
    reason: number[];
    rejectors: number[];
    terminating: boolean[];
    created: number[];
  };
  queue: QueueState;
  series: SeriesPoint[];
  pluginTimes: PluginTime[];
  attempts: AttemptRow[];
  counts: Counts;
}

export interface Batch {
  seq: number;
  clock: ClockState;
  words?: Partial<Words>;
  nodes?: { set?: NodeRow[]; gone?: number[] };
  pods?: { set?: PodRow[]; gone?: string[] };
  queue?: QueueState;
  attempts?: AttemptRow[];
  series?: SeriesPoint[];
  pluginTimes?: PluginTime[];
  leader?: Leader;
  counts?: Counts;
}
