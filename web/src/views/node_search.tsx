// The field that finds nodes by name, label or taint. The server searches: it has all labels.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import type { Cluster } from "../model/cluster";
import { choice } from "../model/route";
import { read } from "../model/server";
import { plural } from "../widgets/format";

const PAUSE_MS = 150; // after the last key

const text = choice<string>("nodes", () => "");

// The names of the nodes that were searched for; null without a search.
export function useFoundNodes(cluster: Cluster): Set<string> | null {
  const names = useSignal<string[] | null>(null);
  const wanted = text.current.value.trim();
  useEffect(() => {
    if (!wanted) {
      names.value = null;
      return;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => {
      read<{ names: string[] }>(`nodes?find=${encodeURIComponent(wanted)}`, abort.signal)
        .then((answer) => (names.value = answer.names))
        .catch(() => undefined); // the field is typed in again, or the connection is lost
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [wanted, cluster.layoutVersion]);
  return useMemo(() => (names.value ? new Set(names.value) : null), [names.value]);
}

export function NodeSearch({ found }: { found: Set<string> | null }) {
  return (
    <div class="find node-find">
      <input
        type="search"
        aria-label="Find nodes by name, label or taint"
        placeholder="Find nodes: name, label=value, taint"
        value={text.current.value}
        onInput={(event) => text.set(event.currentTarget.value)}
      />
      <span class="faint" role="status">
        {found && (found.size === 0 ? "none" : plural(found.size, "node"))}
      </span>
    </div>
  );
}
