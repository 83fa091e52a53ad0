// Questions to the server other than the stream: explanations, attempts, and what a demo can do.

import { signal } from "@preact/signals";

// What the last action did, or why it could not: shown, and read out once.
export const notice = signal<{ text: string; bad: boolean } | null>(null);

export class Refused extends Error {}

export interface Done {
  message: string;
  objects: number;
  text?: string; // what was saved
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
