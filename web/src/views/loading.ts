// A document of the server that belongs to what is opened: loading, there, or refused.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { read } from "../model/server";

export interface Loaded<T> {
  value: T | null;
  error: string;
}

// Read again when `again` changes; what was there stays until the new answer is.
export function useDocument<T>(path: string, again: unknown): Loaded<T> {
  const value = useSignal<{ path: string; document: T } | null>(null);
  const error = useSignal("");
  useEffect(() => {
    const abort = new AbortController();
    read<T>(path, abort.signal)
      .then((document) => {
        value.value = { path, document };
        error.value = "";
      })
      .catch((problem: unknown) => {
        if (!abort.signal.aborted) error.value = problem instanceof Error ? problem.message : String(problem);
      });
    return () => abort.abort();
  }, [path, again]);
  const current = value.value?.path === path ? value.value.document : null;
  return { value: current, error: error.value };
}
