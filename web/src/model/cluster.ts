// The cluster as the page has it: columns of nodes and pods, changed in place by each batch.
//
// Rows are places in the columns; a row that became free is used again. Nothing here decides anything:
// amounts, places and reasons are the server's.

import type { Attempt, AttemptRow, Batch, NodeRow, PodRow, SeriesPoint, State, Words } from "./protocol";

const ATTEMPTS_MAX = 2000;
const SERIES_MAX = 3600;

class Rows<Key> {
  of = new Map<Key, number>();
  length = 0;
  private free: number[] = [];

  take(key: Key): number {
    let row = this.of.get(key);
    if (row === undefined) {
      row = this.free.pop() ?? this.length++;
      this.of.set(key, row);
    }
    return row;
  }

  give(key: Key): number | undefined {
    const row = this.of.get(key);
    if (row === undefined) return undefined;
    this.of.delete(key);
    this.free.push(row);
    return row;
  }
}

export class Nodes {
  rows = new Rows<number>(); // by the server's id
  byName = new Map<string, number>();
  alive: boolean[] = [];
  id: number[] = [];
  name: string[] = [];
  groups: string[][] = [];
  unschedulable: boolean[] = [];
  ready: boolean[] = [];
  taints: string[][] = [];
  allocatable: number[][] = [];
  requested: number[][] = [];
  created: number[] = []; // milliseconds since 1970, 0 if it is not known
  podCount: number[] = [];

  // Returns whether the map has to be laid out again.
  set(fields: NodeRow): boolean {
    const [id, name, groups, unschedulable, ready, taints, allocatable, requested, created] = fields;
    const row = this.rows.take(id);
    const isNew = !this.alive[row];
    const moved = isNew || this.name[row] !== name || String(this.groups[row]) !== String(groups);
    this.alive[row] = true;
    this.id[row] = id;
    this.name[row] = name;
    this.groups[row] = groups;
    this.unschedulable[row] = unschedulable;
    this.ready[row] = ready;
    this.taints[row] = taints;
    this.allocatable[row] = allocatable;
    this.requested[row] = requested;
    this.created[row] = created;
    if (isNew) this.podCount[row] = 0;
    this.byName.set(name, row);
    return moved;
  }

  remove(id: number): void {
    const row = this.rows.give(id);
    if (row === undefined) return;
    this.alive[row] = false;
    if (this.byName.get(this.name[row]) === row) this.byName.delete(this.name[row]);
  }

  get count(): number {
    return this.rows.of.size;
  }

  // 0..1, or NaN for a node without the resource.
  share(row: number, resource: number): number {
    const allocatable = this.allocatable[row][resource] ?? 0;
    return allocatable > 0 ? (this.requested[row][resource] ?? 0) / allocatable : NaN;
  }
}

export class Pods {
  rows = new Rows<string>();
  key: string[] = [];
  node: number[] = []; // the server's id, -1 without one
  place: number[] = [];
  priority: number[] = [];
  owner: number[] = [];
  requests: number[] = [];
  reason: number[] = [];
  rejectors: number[] = [];
  terminating: boolean[] = [];
  created: number[] = [];

  set(fields: PodRow): number {
    const row = this.rows.take(fields[0]);
    [
      this.key[row],
      this.node[row],
      this.place[row],
      this.priority[row],
      this.owner[row],
      this.requests[row],
      this.reason[row],
      this.rejectors[row],
      this.terminating[row],
      this.created[row],
    ] = fields;
    return row;
  }

  get count(): number {
    return this.rows.of.size;
  }
}

export interface Flight {
  place: number;
  node: number; // row
}

export class Cluster {
  seq: number;
  words: Words;
  nodes = new Nodes();
  pods = new Pods();
  attempts: Attempt[]; // the newest last
  series: SeriesPoint[];
  pluginTimes = new Map<string, { point: string; plugin: string; calls: number; totalMs: number }>();
  layoutVersion = 0; // grows when a node comes, goes or changes its groups
  flights: Flight[] = []; // pods that were given a node, until the animation takes them

  constructor(public state: State) {
    this.seq = state.seq;
    this.words = copyOf(state.words);
    this.attempts = state.attempts.map((row) => this.attemptOf(row));
    this.series = [...state.series];
    this.loadNodes(state.nodes);
    this.loadPods(state.pods);
    this.setPluginTimes(state.pluginTimes);
  }

  private loadNodes(columns: State["nodes"]): void {
    const c = columns;
    for (let at = 0; at < c.id.length; at++) {
      this.nodes.set([
        c.id[at],
        c.name[at],
        c.groups[at],
        c.unschedulable[at],
        c.ready[at],
        c.taints[at],
        c.allocatable[at],
        c.requested[at],
        c.created[at],
      ]);
    }
  }

  private loadPods(columns: State["pods"]): void {
    const { pods } = this;
    Object.assign(pods, columns);
    pods.rows.length = columns.key.length;
    for (let row = 0; row < columns.key.length; row++) {
      pods.rows.of.set(columns.key[row], row);
      this.countOn(columns.node[row], 1);
    }
  }

  private countOn(nodeId: number, change: number): void {
    const row = nodeId < 0 ? undefined : this.nodes.rows.of.get(nodeId);
    if (row !== undefined) this.nodes.podCount[row] += change;
  }

  private setPluginTimes(times: State["pluginTimes"]): void {
    for (const [point, plugin, calls, totalMs] of times) {
      this.pluginTimes.set(`${point} ${plugin}`, { point, plugin, calls, totalMs });
    }
  }

  apply(batch: Batch): void {
    this.seq = batch.seq;
    this.state.clock = batch.clock;
    if (batch.words) this.addWords(batch.words);
    if (batch.nodes) this.changeNodes(batch.nodes.set ?? [], batch.nodes.gone ?? []);
    if (batch.pods) this.changePods(batch.pods.set ?? [], batch.pods.gone ?? []);
    if (batch.queue) this.state.queue = batch.queue;
    if (batch.leader) this.state.scheduler.leader = batch.leader;
    if (batch.counts) this.state.counts = batch.counts;
    if (batch.attempts) this.addAttempts(batch.attempts);
    if (batch.series) this.addSeries(batch.series);
    if (batch.pluginTimes) this.setPluginTimes(batch.pluginTimes);
  }

  private addWords(words: Partial<Words>): void {
    for (const [list, added] of Object.entries(words)) {
      (this.words[list as keyof Words] as unknown[]).push(...(added as unknown[]));
    }
  }

  private attemptOf(row: AttemptRow): Attempt {
    const [id, time, pod, node, result, reason, durationMs, nominated, victims, owner] = row;
    const texts = { reason: this.words.reasons[reason] ?? "", owner: this.words.owners[owner] ?? "" };
    return { id, time, pod, node, result, durationMs, nominated, victims, ...texts };
  }

  private addAttempts(rows: AttemptRow[]): void {
    this.attempts = [...this.attempts, ...rows.map((row) => this.attemptOf(row))].slice(-ATTEMPTS_MAX);
  }

  // The last second is sent again as long as it grows.
  private addSeries(points: SeriesPoint[]): void {
    const kept = this.series.filter((point) => point[0] < points[0]?.[0]);
    this.series = [...kept, ...points].slice(-SERIES_MAX);
  }

  private changeNodes(set: NodeRow[], gone: number[]): void {
    let moved = gone.length > 0;
    for (const id of gone) this.nodes.remove(id);
    for (const fields of set) moved = this.nodes.set(fields) || moved;
    if (moved) this.layoutVersion += 1;
  }

  private changePods(set: PodRow[], gone: string[]): void {
    const { pods } = this;
    for (const key of gone) {
      const row = pods.rows.give(key);
      if (row === undefined) continue;
      this.countOn(pods.node[row], -1);
      pods.place[row] = -1;
      pods.node[row] = -1;
      pods.key[row] = "";
    }
    for (const fields of set) {
      const known = pods.rows.of.get(fields[0]);
      const before = known === undefined ? -1 : pods.node[known];
      const place = known === undefined ? 0 : pods.place[known];
      if (before !== fields[1]) {
        this.countOn(before, -1);
        this.countOn(fields[1], 1);
        if (before < 0) this.addFlight(place, fields[1]);
      }
      pods.set(fields);
    }
  }

  private addFlight(place: number, nodeId: number): void {
    const row = this.nodes.rows.of.get(nodeId);
    if (row !== undefined && this.flights.length < 256) this.flights.push({ place, node: row });
  }

  podsOn(nodeRow: number): number[] {
    const id = this.nodes.id[nodeRow];
    const found: number[] = [];
    for (let row = 0; row < this.pods.rows.length; row++) if (this.pods.node[row] === id) found.push(row);
    return found.sort((a, b) => (this.pods.key[a] < this.pods.key[b] ? -1 : 1));
  }

  // Namespace, kind and name of what made a pod: two namespaces may have a Deployment of one name.
  ownerOf(podRow: number): string {
    const key = this.pods.key[podRow];
    const owner = this.words.owners[this.pods.owner[podRow]];
    return owner ? `${key.slice(0, key.indexOf("/"))}/${owner}` : "";
  }

  // By node row: how many pods each owner has there, the most first. A pod without an owner is its own.
  ownersByNode(): Map<number, { name: string; count: number }[]> {
    const counts = new Map<number, Map<string, number>>();
    for (let row = 0; row < this.pods.rows.length; row++) {
      const node = this.pods.node[row] < 0 ? undefined : this.nodes.rows.of.get(this.pods.node[row]);
      if (node === undefined) continue;
      const owner = this.words.owners[this.pods.owner[row]] || this.pods.key[row];
      const name = owner.slice(owner.indexOf("/") + 1);
      let byName = counts.get(node);
      if (!byName) counts.set(node, (byName = new Map()));
      byName.set(name, (byName.get(name) ?? 0) + 1);
    }
    const sorted = new Map<number, { name: string; count: number }[]>();
    for (const [node, byName] of counts) {
      const entries = [...byName].map(([name, count]) => ({ name, count }));
      sorted.set(node, entries.sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1)));
    }
    return sorted;
  }

  // Pods in the queue, at one place, with one set of rejectors (-1: any) and of one owner ("": any): the
  // most urgent first.
  waiting(place: number, rejectors: number, owner = ""): number[] {
    const { pods } = this;
    const found: number[] = [];
    for (let row = 0; row < pods.rows.length; row++) {
      if (pods.place[row] < 0 || (place >= 0 && pods.place[row] !== place)) continue;
      if (rejectors >= 0 && pods.rejectors[row] !== rejectors) continue;
      if (owner && this.ownerOf(row) !== owner) continue;
      found.push(row);
    }
    return found.sort((a, b) => pods.priority[b] - pods.priority[a] || pods.created[a] - pods.created[b]);
  }
}

function copyOf(words: Words): Words {
  return {
    resources: [...words.resources],
    groupings: [...words.groupings],
    owners: [...words.owners],
    requests: [...words.requests],
    reasons: [...words.reasons],
    rejectors: [...words.rejectors],
  };
}
