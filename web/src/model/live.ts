// The connection to the server: one state, then a stream of batches.
//
// After any interruption the state is read again: a restarted server numbers its batches from the
// beginning, so a number from before says nothing. Attempts to connect are spaced out, up to a limit. A
// server ends streams from time to time; the connection counts as lost only when the state cannot be read.

import { batch as together, computed, signal } from "@preact/signals";

import { Cluster } from "./cluster";
import type { Batch, State } from "./protocol";
import { answer, notice } from "./server";
import { received } from "./timing";

export type Connection = "connecting" | "live" | "lost";

export const connection = signal<Connection>("connecting");
export const problem = signal("");
const live = signal<Cluster | null>(null);
const past = signal<Cluster | null>(null);

// What is shown: a moment of the past if one was chosen, else the present.
export const cluster = computed(() => past.value ?? live.value);
export const isPast = computed(() => past.value !== null);

// Grows with each change of what is shown. Columns change in place, so a component that reads them has
// this as a property beside the cluster: one whose properties are the same is not drawn again.
export const version = signal(0);

export interface Shown {
  cluster: Cluster;
  version: number;
}
// Time and span of the present, also while the past is shown.
export const present = signal<{ time: number; begin: number; speed: number } | null>(null);

const RETRY_MS = [300, 1000, 2000, 4000, 8000];

let stream: EventSource | null = null;
let retries = 0;
let timer = 0;
let frame = 0;

function redrawSoon(): void {
  if (frame) return;
  frame = requestAnimationFrame(() => {
    frame = 0;
    const current = live.value;
    if (current) {
      const { clock, span } = current.state;
      present.value = { time: clock.time, begin: span.begin, speed: clock.speed };
    }
    version.value += 1;
  });
}

async function readState(query: string): Promise<State> {
  const response = await fetch(`state${query}`, { cache: "no-store" });
  return answer<State>(response);
}

export async function connect(): Promise<void> {
  stream?.close();
  clearTimeout(timer);
  try {
    const state = await readState("");
    together(() => {
      live.value = new Cluster(state);
      connection.value = "live";
      problem.value = "";
    });
    redrawSoon();
    follow(state.seq);
  } catch (error) {
    connection.value = live.value ? "lost" : "connecting";
    problem.value = error instanceof Error ? error.message : String(error);
    connectLater();
  }
}

function follow(seq: number): void {
  const source = new EventSource(`stream?since=${seq}`);
  stream = source;
  source.addEventListener("message", (event: MessageEvent<string>) => {
    received();
    retries = 0;
    const batch = JSON.parse(event.data) as Batch;
    const current = live.value;
    if (!current || batch.seq <= current.seq) return;
    current.apply(batch);
    redrawSoon();
  });
  source.addEventListener("reset", () => void connect());
  source.addEventListener("error", () => {
    if (stream === source) connectLater();
  });
}

function connectLater(): void {
  stream?.close();
  stream = null;
  clearTimeout(timer);
  timer = setTimeout(() => void connect(), RETRY_MS[Math.min(retries++, RETRY_MS.length - 1)]);
}

addEventListener("online", () => {
  if (connection.value !== "live") void connect();
});

// --- The past ------------------------------------------------------------------------------------

let wanted = 0;

async function show(query: string): Promise<void> {
  const mine = ++wanted;
  try {
    const state = await readState(query);
    if (mine !== wanted) return; // another moment was chosen meanwhile
    past.value = new Cluster(state);
    version.value += 1;
  } catch (error) {
    notice.value = { text: error instanceof Error ? error.message : String(error), bad: true };
  }
}

export function showAt(timeMs: number): Promise<void> {
  return show(`?at=${Math.round(timeMs)}`);
}

// Right after an attempt.
export function showAttempt(id: number): Promise<void> {
  return show(`?attempt=${id}`);
}

// The number of the last attempt of the present, 0 without one.
export function lastAttempt(): number {
  return live.value?.attempts.at(-1)?.id ?? 0;
}

export function showPresent(): void {
  wanted += 1;
  past.value = null;
  version.value += 1;
}
