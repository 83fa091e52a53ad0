// What is opened and what is chosen, as the address: it can be bookmarked, sent, and left by the back button.
//
//   #/pod/demo/web-1?attempts=failed&nodes=disk%3Dssd
//
// The path is what is opened; a step back leads to what was opened before. The rest are choices, such as
// filters; changing one replaces the address.

import { computed, signal } from "@preact/signals";
import type { ReadonlySignal } from "@preact/signals";

export type Route =
  | { view: "none" }
  | { view: "pod"; namespace: string; name: string }
  | { view: "node"; name: string }
  | { view: "group"; namespace: string; name: string }
  | { view: "attempt"; id: number }
  | { view: "evictions" }
  | { view: "groups" }
  | { view: "scheduler" };

const TABS = ["evictions", "groups", "scheduler"] as const;

function parse(path: string): Route {
  const parts = path.split("/").map(decoded);
  if (parts[0] === "pod" && parts.length === 3) return { view: "pod", namespace: parts[1], name: parts[2] };
  if (parts[0] === "group" && parts.length === 3) return { view: "group", namespace: parts[1], name: parts[2] };
  if (parts[0] === "node" && parts.length === 2) return { view: "node", name: parts[1] };
  if (parts[0] === "attempt" && /^\d+$/.test(parts[1] ?? "")) return { view: "attempt", id: Number(parts[1]) };
  const tab = TABS.find((name) => name === parts[0]);
  return tab ? { view: tab } : { view: "none" };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // typed by hand, with a stray percent sign
  }
}

function pathOf(route: Route): string {
  switch (route.view) {
    case "pod":
    case "group":
      return `${route.view}/${encodeURIComponent(route.namespace)}/${encodeURIComponent(route.name)}`;
    case "node":
      return `node/${encodeURIComponent(route.name)}`;
    case "attempt":
      return `attempt/${route.id}`;
    case "none":
      return "";
    default:
      return route.view;
  }
}

function split(hash: string): [path: string, query: string] {
  const text = hash.replace(/^#\/?/, "");
  const mark = text.indexOf("?");
  return mark < 0 ? [text, ""] : [text.slice(0, mark), text.slice(mark + 1)];
}

export const route = signal<Route>(parse(split(location.hash)[0]));
const choices = signal(new URLSearchParams(split(location.hash)[1]));

addEventListener("hashchange", () => {
  const [path, query] = split(location.hash);
  route.value = parse(path);
  if (query !== choices.value.toString()) choices.value = new URLSearchParams(query);
});

function address(path: string): string {
  const query = choices.value.toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

export interface Choice<T extends string> {
  current: ReadonlySignal<T>;
  set: (value: T) => void;
}

// Something that the reader chose. The usual value is not in the address.
export function choice<T extends string>(key: string, usual: () => T): Choice<T> {
  return {
    current: computed(() => (choices.value.get(key) as T | null) ?? usual()),
    set: (value: T) => {
      const changed = new URLSearchParams(choices.value);
      if (value === usual()) changed.delete(key);
      else changed.set(key, value);
      choices.value = changed;
      history.replaceState(null, "", address(split(location.hash)[0]));
    },
  };
}

let opener: HTMLElement | null = null;

export function open(to: Route): void {
  if (!isOpened(route.value)) opener = document.activeElement as HTMLElement | null;
  location.hash = address(pathOf(to));
}

export function isOpened({ view }: Route): boolean {
  return view === "pod" || view === "node" || view === "attempt" || view === "group";
}

// The focus returns to what opened the panel, if that is still there.
export function close(): void {
  location.hash = address("");
  if (opener?.isConnected) opener.focus();
  opener = null;
}
