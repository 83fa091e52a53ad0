// A native dialog with a form: Escape closes it, and the focus returns to the button that opened it.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { notice } from "../model/server";
import type { Done } from "../model/server";

interface Props {
  title: string;
  submit: string;
  run: () => Promise<Done>;
  onClose: () => void;
  children: ComponentChildren;
}

export function FormDialog({ title, submit, run, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const error = useSignal("");
  const isRunning = useSignal(false);
  useEffect(() => dialog.current!.showModal(), []);
  const onSubmit = (event: Event) => {
    event.preventDefault();
    isRunning.value = true;
    error.value = "";
    run()
      .then((done) => {
        notice.value = { text: done.message, bad: false };
        dialog.current?.close();
      })
      .catch((problem: unknown) => (error.value = problem instanceof Error ? problem.message : String(problem)))
      .finally(() => (isRunning.value = false));
  };
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="dialog-title">
      <form onSubmit={onSubmit}>
        <h2 id="dialog-title">{title}</h2>
        {children}
        {error.value && (
          <p class="error" role="alert">
            {error.value}
          </p>
        )}
        <div class="buttons">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={isRunning.value}>
            {submit}
          </button>
        </div>
      </form>
    </dialog>
  );
}

export function Field(props: { label: string; wide?: boolean; children: ComponentChildren }) {
  return (
    <label class={`field${props.wide ? " wide" : ""}`}>
      {props.label}
      {props.children}
    </label>
  );
}

export function SourceChoice(props: { fromText: boolean; onChange: (fromText: boolean) => void; other: string }) {
  return (
    <span class="joined" role="group" aria-label="From">
      <button type="button" aria-pressed={!props.fromText} onClick={() => props.onChange(false)}>
        {props.other}
      </button>
      <button type="button" aria-pressed={props.fromText} onClick={() => props.onChange(true)}>
        YAML
      </button>
    </span>
  );
}
