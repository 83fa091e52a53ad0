// What happened over time, read from the server for the window that is shown.

import { computed, effect, signal } from "@preact/signals";

import { connection, present } from "./live";
import { choice } from "./route";
import { read } from "./server";

export type TrendPoint = [
  time: number,
  scheduled: number,
  failed: number,
  evicted: number,
  p50Ms: number,
  p99Ms: number,
  places: number[],
  causes: [rejectors: number, count: number][],
  use: number[][],
];

export interface Trends {
  begin: number;
  widthMs: number;
  groups: { key: string; value: string }[];
  points: TrendPoint[];
}

export interface Window {
  begin: number; // milliseconds
  end: number;
}

const EVERY_MS = 1000;
const PAUSE_MS_MAX = 5000;
const LEAST_MS = 10_000;
const USUAL_S = 600; // at speed 1
const REAL_S = 120; // at other speeds as much as passes in this time

// "" follows the time and its speed, "all" is everything, "BEGIN-END" stays.
const chosen = choice<string>("window", () => "");
export const trends = signal<Trends | null>(null);

export const isFollowing = computed(() => chosen.current.value === "");
export const isAll = computed(() => chosen.current.value === "all");

function fixed(): Window | null {
  const match = /^(\d{1,15})-(\d{1,15})$/.exec(chosen.current.value);
  return match && Number(match[1]) < Number(match[2]) ? { begin: Number(match[1]), end: Number(match[2]) } : null;
}

export const shownWindow = computed<Window | null>(() => {
  const now = present.value;
  if (!now) return null;
  const begin = trends.value?.begin || now.begin;
  const own = fixed();
  if (own) return own;
  if (isAll.value) return { begin: Math.min(begin, now.time - LEAST_MS), end: now.time };
  const length = 1000 * Math.max(USUAL_S, REAL_S * now.speed);
  return { begin: Math.max(now.time - length, Math.min(begin, now.time - LEAST_MS)), end: now.time };
});

export function follow(): void {
  chosen.set("");
}

export function showAll(): void {
  chosen.set("all");
}

export function showWindow(begin: number, end: number): void {
  const length = Math.max(LEAST_MS, end - begin);
  chosen.set(`${Math.max(0, Math.round(begin))}-${Math.round(begin + length)}`);
}

// Around its middle, or its end while it follows the time.
export function zoom(factor: number): void {
  const now = shownWindow.value;
  if (!now) return;
  const length = (now.end - now.begin) * factor;
  const middle = (now.begin + now.end) / 2;
  const end = isFollowing.value || isAll.value ? now.end : middle + length / 2;
  showWindow(end - length, end);
}

// By a part of its length.
export function pan(share: number): void {
  const now = shownWindow.value;
  if (!now) return;
  const by = (now.end - now.begin) * share;
  showWindow(now.begin + by, now.end + by);
}

let isReading = false;
let readAt = -Infinity;

// A point that lasts long need not be read each second.
function pauseMs(): number {
  const real = (trends.peek()?.widthMs ?? 0) / Math.max(1, present.peek()?.speed ?? 1);
  return Math.min(PAUSE_MS_MAX, Math.max(EVERY_MS, real)) - EVERY_MS / 2;
}

async function readAgain(): Promise<void> {
  const now = shownWindow.peek();
  if (isReading || !now || document.hidden || connection.peek() !== "live") return;
  isReading = true;
  readAt = performance.now();
  try {
    trends.value = await read<Trends>(`trends?begin=${isAll.peek() ? 0 : Math.floor(now.begin)}&end=${Math.ceil(now.end)}`);
  } catch {
    // The connection is lost, which the page shows; the next question may be answered.
  } finally {
    isReading = false;
  }
}

setInterval(() => {
  if (performance.now() - readAt >= pauseMs()) void readAgain();
}, EVERY_MS);
effect(() => {
  if (chosen.current.value !== undefined && connection.value === "live") setTimeout(() => void readAgain(), 0);
});
