// What the reader chose, kept in the browser: theme, resource, grouping, view.

import { computed, effect, signal } from "@preact/signals";
import type { Signal } from "@preact/signals";

import type { Theme } from "../map/palette";
import { choice } from "./route";

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

// In the address, so that what is sent looks the same elsewhere; what was chosen last is the usual value.
const lastResource = setting<string>("resource", "cpu");
const lastGrouping = setting<string>("grouping", "zone");
const lastView = setting<"map" | "table">("view", "map");
const resourceChoice = choice("colour", () => lastResource.value);
const groupingChoice = choice("group", () => lastGrouping.value);
const viewChoice = choice<"map" | "table">("view", () => lastView.value);

export const resource = resourceChoice.current;
export const grouping = groupingChoice.current;
export const mapView = viewChoice.current;

export function chooseResource(name: string): void {
  lastResource.value = name;
  resourceChoice.set(name);
}

export function chooseGrouping(key: string): void {
  lastGrouping.value = key;
  groupingChoice.set(key);
}

export function chooseView(view: "map" | "table"): void {
  lastView.value = view;
  viewChoice.set(view);
}

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
