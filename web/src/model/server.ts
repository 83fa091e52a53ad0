// Questions to the server other than the stream: explanations, attempts, and what a demo can do.

import { signal } from "@preact/signals";

// What the last action did, or why it could not: shown, and read out once.
export const notice = signal<{ text: string; bad: boolean } | null>(null);

export class Refused extends Error {}

export interface Done {
  message: string;
  objects: number;
  text?: string; // what was saved
  view?: PlanView; // what was planned
}

// A plan of evictions: nodes before it, the fullest first, and what each step moves.
export interface PlanView {
  goal: string;
  unit: string;
  figureBefore: number;
  resources: string[];
  nodes: PlannedNode[];
  steps: PlanStep[];
  leftOut: number;
}

export interface PlannedNode {
  name: string;
  allocatable: number[]; // by resource
  requested: number[];
  pods: number;
  isClosed: boolean;
}

export interface PlanStep {
  text: string;
  action: string;
  node: number; // that is closed or opened; -1 for an eviction
  moves: PlanMove[];
  figure: number;
}

export interface PlanMove {
  pod: string;
  source: number; // -1: the pod waited
  target: number;
  requested: number[];
}

export async function answer<T>(response: Response): Promise<T> {
  if (response.ok) return (await response.json()) as T;
  const text = await response.text();
  let message = text;
  try {
    const { error } = JSON.parse(text) as { error: { message: string; where: string } };
    message = error.where ? `${error.message} (${error.where})` : error.message;
  } catch {
    // Not JSON: the text itself.
  }
  throw new Refused(message.slice(0, 2000) || `HTTP ${response.status}`);
}

export async function read<T>(path: string, abort?: AbortSignal): Promise<T> {
  return answer<T>(await fetch(path, { cache: "no-store", signal: abort }));
}

export async function act(name: string, body: unknown): Promise<Done> {
  const response = await fetch(`actions/${encodeURIComponent(name)}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return answer<Done>(response);
}
