// What the reader chose, kept in the browser: theme, resource, grouping, view.

import { computed, effect, signal } from "@preact/signals";
import type { Signal } from "@preact/signals";

import type { Theme } from "../map/palette";

// Storage may be switched off or full; the page then forgets, nothing else.
function stored(key: string): string | null {
  try {
    return localStorage.getItem(`kubestow.${key}`);
  } catch {
    return null;
  }
}

function store(key: string, value: string): void {
  try {
    localStorage.setItem(`kubestow.${key}`, value);
  } catch {
    return;
  }
}

function setting<T extends string>(key: string, initial: T): Signal<T> {
  const value = signal<T>((stored(key) as T | null) ?? initial);
  effect(() => store(key, value.value));
  return value;
}

export const themeChoice = setting<Theme | "system">("theme", "system");
export const resource = setting<string>("resource", "cpu");
export const grouping = setting<string>("grouping", "zone");
export const mapView = setting<"map" | "table">("view", "map");

const darkQuery = matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(darkQuery.matches);
darkQuery.addEventListener("change", (event) => (systemDark.value = event.matches));

const motionQuery = matchMedia("(prefers-reduced-motion: reduce)");
export const reducedMotion = signal(motionQuery.matches);
motionQuery.addEventListener("change", (event) => (reducedMotion.value = event.matches));

export const theme = computed<Theme>(() => {
  if (themeChoice.value === "light" || themeChoice.value === "dark") return themeChoice.value;
  return systemDark.value ? "dark" : "light";
});

// At once, before the first frame: an effect of a component would flash the other theme.
effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
