// What can be done in a demo: its time, and what is in the cluster.

import { useSignal } from "@preact/signals";

import type { Shown } from "../model/live";
import { act, notice } from "../model/server";
import { AddNodes, AddPods, LoadCluster } from "./add";
import { Rebalance } from "./rebalance";

const SPEEDS = [0.1, 0.5, 1, 2, 5, 10, 60, 300, 1000];

export function run(name: string, body: unknown): void {
  act(name, body)
    .then((done) => (notice.value = { text: done.message, bad: false }))
    .catch((error: unknown) => {
      notice.value = { text: error instanceof Error ? error.message : String(error), bad: true };
    });
}

async function save(): Promise<void> {
  try {
    const done = await act("save", {});
    const address = URL.createObjectURL(new Blob([done.text ?? ""], { type: "application/json" }));
    const link = document.createElement("a");
    link.href = address;
    link.download = "cluster.json";
    link.click();
    URL.revokeObjectURL(address);
    notice.value = { text: done.message, bad: false };
  } catch (error) {
    notice.value = { text: error instanceof Error ? error.message : String(error), bad: true };
  }
}

export function DemoBar({ cluster }: Shown) {
  const dialog = useSignal<"" | "pods" | "nodes" | "plan" | "load">("");
  const { actions } = cluster.state;
  const can = (name: string) => actions.includes(name);
  const close = () => (dialog.value = "");
  if (actions.length === 0) return null;
  return (
    <div class="joined-bar" role="group" aria-label="Demo">
      {can("add-pods") && <button onClick={() => (dialog.value = "pods")}>Add pods…</button>}
      {can("add-nodes") && <button onClick={() => (dialog.value = "nodes")}>Add nodes…</button>}
      {can("plan") && <button onClick={() => (dialog.value = "plan")}>Rebalance…</button>}
      {can("load") && <button onClick={() => (dialog.value = "load")}>Load…</button>}
      {can("save") && <button onClick={() => void save()}>Save</button>}
      {dialog.value === "pods" && <AddPods onClose={close} />}
      {dialog.value === "nodes" && <AddNodes onClose={close} />}
      {dialog.value === "plan" && <Rebalance onClose={close} />}
      {dialog.value === "load" && <LoadCluster onClose={close} />}
    </div>
  );
}

export function ClockControls({ cluster }: Shown) {
  const { clock } = cluster.state;
  if (!clock.canChange) return null;
  const speeds = SPEEDS.includes(clock.speed) ? SPEEDS : [...SPEEDS, clock.speed].sort((a, b) => a - b);
  return (
    <span class="joined-bar" role="group" aria-label="Time of the cluster">
      <button onClick={() => run(clock.paused ? "resume" : "pause", {})}>{clock.paused ? "▶ Resume" : "❚❚ Pause"}</button>
      <select
        aria-label="Speed"
        value={String(clock.speed)}
        onChange={(event) => run("speed", { factor: Number(event.currentTarget.value) })}
      >
        {speeds.map((speed) => (
          <option key={speed} value={String(speed)}>
            {speed === 0 ? "as fast as possible" : `${speed}×`}
          </option>
        ))}
      </select>
    </span>
  );
}
