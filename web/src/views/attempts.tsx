// Attempts as they happen, the newest first; all of them, or those that were asked for.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import type { Cluster } from "../model/cluster";
import type { Shown } from "../model/live";
import type { Attempt } from "../model/protocol";
import { choice, open } from "../model/route";
import { read } from "../model/server";
import { seconds, timeOfDay } from "../widgets/format";
import { VirtualList } from "../widgets/virtual_list";
import { splitKey } from "./queue";

const OLDER_MAX = 1000;
const PAUSE_MS = 150; // after the last key

const SIGN: Record<string, [sign: string, kind: string]> = {
  scheduled: ["✓", "good"],
  unschedulable: ["✗", "bad"],
  error: ["!", "bad"],
};

const result = choice<string>("attempts", () => "");
const namespace = choice<string>("namespace", () => "");
const text = choice<string>("find", () => "");

export function Attempts({ cluster, version }: Shown) {
  const wanted = { result: result.current.value, namespace: namespace.current.value, text: text.current.value.trim() };
  const isFiltered = Object.values(wanted).some(Boolean);
  const older = useOlder(wanted, isFiltered);
  const attempts = useMemo(() => {
    const newest = cluster.attempts.toReversed();
    if (!isFiltered) return newest;
    const found = newest.filter((attempt) => matches(attempt, wanted));
    const first = newest.at(-1)?.id ?? Infinity;
    return [...found, ...older.filter((attempt) => attempt.id < first)];
  }, [cluster, version, older, ...Object.values(wanted)]);
  return (
    <>
      <Filters cluster={cluster} version={version} />
      <VirtualList
        label="Attempts, the newest first"
        count={attempts.length}
        rowHeight={42}
        empty={isFiltered ? "No attempt that is kept is like this" : "No attempts yet"}
        onActivate={(index) => open({ view: "attempt", id: attempts[index].id })}
        row={(index) => <AttemptLine attempt={attempts[index]} />}
      />
    </>
  );
}

interface Wanted {
  result: string;
  namespace: string;
  text: string;
}

// As the server filters them, for those that arrive meanwhile.
function matches(attempt: Attempt, wanted: Wanted): boolean {
  const part = wanted.text.toLowerCase();
  if (wanted.result === "failed" ? attempt.node : wanted.result && attempt.result !== wanted.result) return false;
  if (wanted.namespace && !attempt.pod.startsWith(`${wanted.namespace}/`)) return false;
  return !part || attempt.pod.toLowerCase().includes(part) || attempt.owner.toLowerCase().includes(part);
}

// What the server keeps beyond the newest, which the page has anyway.
function useOlder(wanted: Wanted, isFiltered: boolean): Attempt[] {
  const older = useSignal<Attempt[]>([]);
  useEffect(() => {
    older.value = [];
    if (!isFiltered) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const query = new URLSearchParams({ ...wanted, limit: String(OLDER_MAX) });
      read<{ attempts: Attempt[] }>(`attempts?${query}`, abort.signal)
        .then((answer) => (older.value = answer.attempts))
        .catch(() => undefined); // another filter was chosen, or the connection is lost
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, Object.values(wanted));
  return older.value;
}

function Filters({ cluster, version }: Shown) {
  const namespaces = useMemo(() => namespacesOf(cluster), [cluster, Math.floor(version / 16)]);
  const chosen = namespace.current.value;
  return (
    <div class="filters">
      <span class="joined" role="group" aria-label="Result">
        {[
          ["", "All"],
          ["scheduled", "Placed"],
          ["failed", "Failed"],
        ].map(([value, name]) => (
          <button key={value} aria-pressed={result.current.value === value} onClick={() => result.set(value)}>
            {name}
          </button>
        ))}
      </span>
      <select aria-label="Namespace" value={chosen} onChange={(event) => namespace.set(event.currentTarget.value)}>
        <option value="">all namespaces</option>
        {[...new Set([...namespaces, ...(chosen ? [chosen] : [])])].map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <input
        type="search"
        aria-label="Find attempts by pod or owner"
        placeholder="Pod or owner"
        value={text.current.value}
        onInput={(event) => text.set(event.currentTarget.value)}
      />
    </div>
  );
}

function namespacesOf(cluster: Cluster): string[] {
  const found = new Set<string>();
  for (const key of cluster.pods.rows.of.keys()) found.add(key.slice(0, key.indexOf("/")));
  return [...found].sort();
}

export function AttemptLine({ attempt }: { attempt: Attempt }) {
  const { time, pod, node, result, reason, durationMs, nominated, victims } = attempt;
  const [sign, kind] = SIGN[result] ?? ["?", ""];
  const [namespace, name] = splitKey(pod);
  return (
    <>
      <span class={`badge ${kind}`} title={result}>
        <span aria-hidden="true">{sign}</span>
        <span class="visually-hidden">{result}</span>
      </span>
      <span class="grow">
        <span class="clip line">
          <span class="what">{name}</span> <span class="faint">{namespace}</span>
        </span>
        <span class="clip line faint" title={reason}>
          {node ? `→ ${node}` : nominated ? `evicts ${victims} on ${nominated}` : reason || result}
        </span>
      </span>
      <span class="right">
        <span class="line faint">{timeOfDay(time / 1000)}</span>
        <span class="line">{seconds(durationMs / 1000)}</span>
      </span>
    </>
  );
}
