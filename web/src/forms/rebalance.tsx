// Looks for a plan of evictions, and shows it; nothing in the cluster is changed.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { act } from "../model/server";
import type { PlanView } from "../model/server";
import { PlanPicture } from "../views/plan";
import { Field } from "./dialog";

const GOALS = ["balance", "spread", "empty-nodes", "violations", "defragment=cpu:4"];

export function Rebalance({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const goal = useSignal(GOALS[0]);
  const moves = useSignal("20");
  const message = useSignal("");
  const error = useSignal("");
  const view = useSignal<PlanView | null>(null);
  const isRunning = useSignal(false);
  useEffect(() => dialog.current!.showModal(), []);
  const onSubmit = (event: Event) => {
    event.preventDefault();
    isRunning.value = true;
    error.value = message.value = "";
    act("plan", { goal: goal.value, maxMoves: Number(moves.value) })
      .then((done) => {
        message.value = done.message;
        view.value = done.view ?? null;
      })
      .catch((problem: unknown) => (error.value = problem instanceof Error ? problem.message : String(problem)))
      .finally(() => (isRunning.value = false));
  };
  return (
    <dialog ref={dialog} class="plan" onClose={onClose} aria-labelledby="plan-title">
      <form onSubmit={onSubmit}>
        <h2 id="plan-title">Rebalance</h2>
        <p class="faint">Which pods to evict so that a figure gets better, and where each of them goes. Nothing is evicted here.</p>
        <div class="fields">
          <Field label="Goal">
            <input list="plan-goals" required value={goal.value} onInput={(event) => (goal.value = event.currentTarget.value)} />
          </Field>
          <datalist id="plan-goals">
            {GOALS.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
          <Field label="Evictions, at most">
            <input
              type="number"
              min="1"
              max="200"
              required
              value={moves.value}
              onInput={(event) => (moves.value = event.currentTarget.value)}
            />
          </Field>
        </div>
        {error.value && (
          <p class="error" role="alert">
            {error.value}
          </p>
        )}
        <p role="status">{message.value}</p>
        {view.value && view.value.steps.length > 0 && <PlanPicture view={view.value} />}
        <div class="buttons">
          <button type="button" onClick={() => dialog.current?.close()}>
            Close
          </button>
          <button type="submit" class="primary" disabled={isRunning.value}>
            Find a plan
          </button>
        </div>
      </form>
    </dialog>
  );
}
