// What is opened, as part of the address: it can be bookmarked, sent, and left by the back button.

import { signal } from "@preact/signals";

export type Route =
  | { view: "none" }
  | { view: "pod"; namespace: string; name: string }
  | { view: "node"; name: string }
  | { view: "attempt"; id: number }
  | { view: "scheduler" };

function parse(hash: string): Route {
  const parts = hash.replace(/^#\/?/, "").split("/").map(decoded);
  if (parts[0] === "pod" && parts.length === 3) return { view: "pod", namespace: parts[1], name: parts[2] };
  if (parts[0] === "node" && parts.length === 2) return { view: "node", name: parts[1] };
  if (parts[0] === "attempt" && /^\d+$/.test(parts[1] ?? "")) return { view: "attempt", id: Number(parts[1]) };
  if (parts[0] === "scheduler") return { view: "scheduler" };
  return { view: "none" };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // typed by hand, with a stray percent sign
  }
}

export function addressOf(route: Route): string {
  switch (route.view) {
    case "pod":
      return `#/pod/${encodeURIComponent(route.namespace)}/${encodeURIComponent(route.name)}`;
    case "node":
      return `#/node/${encodeURIComponent(route.name)}`;
    case "attempt":
      return `#/attempt/${route.id}`;
    case "scheduler":
      return "#/scheduler";
    case "none":
      return "#/";
  }
}

export const route = signal<Route>(parse(location.hash));
addEventListener("hashchange", () => (route.value = parse(location.hash)));

let opener: HTMLElement | null = null;

export function open(to: Route): void {
  if (route.value.view === "none") opener = document.activeElement as HTMLElement | null;
  location.hash = addressOf(to);
}

// The focus returns to what opened the panel, if that is still there.
export function close(): void {
  location.hash = "#/";
  if (opener?.isConnected) opener.focus();
  opener = null;
}
