// Text to take along: a block of it, and the button that copies it.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

const SHOWN_MS = 2000;

interface Props {
  text: string;
  label: string; // what is copied, for screen readers
  children?: string; // of the button
}

export function CopyButton({ text, label, children = "Copy" }: Props) {
  const state = useSignal<"" | "copied" | "failed">("");
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      state.value = "copied";
    } catch {
      state.value = "failed"; // The browser refuses it; the text can be selected.
    }
    clearTimeout(timer.current);
    timer.current = setTimeout(() => (state.value = ""), SHOWN_MS);
  };
  return (
    <button class="copy" onClick={() => void copy()} aria-label={`${children} ${label}`}>
      <span role="status">{state.value === "copied" ? "Copied" : state.value === "failed" ? "Not allowed" : children}</span>
    </button>
  );
}

export function CopyBlock({ text, label }: { text: string; label: string }) {
  return (
    <div class="copy-block">
      <pre tabIndex={0} aria-label={label}>
        {text}
      </pre>
      <CopyButton text={text} label={label} />
    </div>
  );
}
