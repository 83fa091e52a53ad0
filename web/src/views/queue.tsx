// Pods that wait: at which place, why, and which.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";

import type { Cluster } from "../model/cluster";
import type { Shown } from "../model/live";
import { open, route } from "../model/route";
import { count } from "../widgets/format";
import { VirtualList } from "../widgets/virtual_list";

const FOUND_MAX = 500;

const ABOUT: Record<string, string> = {
  active: "tried as soon as it is their turn",
  backoff: "wait a moment after an attempt that failed",
  "error backoff": "wait a moment after an error",
  unschedulable: "no node fits; wait for a change that may help",
  gated: "held back before any attempt",
  "in flight": "being decided on or bound",
};

export function Queue({ cluster, version }: Shown) {
  const place = useSignal(-1);
  const rejectors = useSignal(-1);
  const text = useSignal("");
  const { queue, places } = cluster.state;
  const total = queue.places.reduce((sum, number) => sum + number, 0);
  const rows = useMemo(
    () => (text.value ? findPods(cluster, text.value) : cluster.waiting(place.value, rejectors.value)),
    [cluster, version, place.value, rejectors.value, text.value],
  );
  const opened = route.value.view === "pod" ? `${route.value.namespace}/${route.value.name}` : "";
  return (
    <section class="panel queue" aria-labelledby="queue-title">
      <div class="panel-head">
        <h2 id="queue-title">Queue</h2>
        <span class="faint">
          <b class="number">{count(total)}</b> {total === 1 ? "pod waits" : "pods wait"}
        </span>
      </div>
      <ul class="places">
        {places.map((name, index) => (
          <li key={name}>
            <button
              data-place={index}
              aria-pressed={place.value === index}
              title={ABOUT[name]}
              style={{ "--place": `var(--place-${index % 6})` }}
              onClick={() => (place.value = place.value === index ? -1 : index)}
            >
              <i aria-hidden="true" />
              <span>{name}</span>
              <b class="number">{count(queue.places[index] ?? 0)}</b>
            </button>
          </li>
        ))}
      </ul>
      {queue.rejectors.length > 0 && (
        <div class="reasons">
          <h3>Rejected by</h3>
          <ul>
            {queue.rejectors.map(([word, number]) => (
              <li key={word}>
                <button
                  aria-pressed={rejectors.value === word}
                  onClick={() => (rejectors.value = rejectors.value === word ? -1 : word)}
                >
                  <span>{cluster.words.rejectors[word] || "not tried yet"}</span>
                  <b class="number">{count(number)}</b>
                </button>
              </li>
            ))}
          </ul>
        </div>
      )}
      <div class="listed">
        <div class="find">
          <input
            type="search"
            aria-label="Find pods by name, also those on nodes"
            placeholder="Find a pod by name"
            value={text.value}
            onInput={(event) => (text.value = event.currentTarget.value)}
          />
          {(place.value >= 0 || rejectors.value >= 0) && (
            <button
              onClick={() => {
                place.value = -1;
                rejectors.value = -1;
              }}
            >
              All
            </button>
          )}
        </div>
        <VirtualList
          label={text.value ? "Pods with this name" : "Waiting pods"}
          count={rows.length}
          rowHeight={26}
          current={opened ? rows.findIndex((row) => cluster.pods.key[row] === opened) : -1}
          empty={text.value ? "No pod has this in its name" : "No pod waits"}
          onActivate={(index) => openPod(cluster.pods.key[rows[index]])}
          row={(index) => <PodLine cluster={cluster} version={version} row={rows[index]} />}
        />
      </div>
    </section>
  );
}

export function openPod(key: string): void {
  const slash = key.indexOf("/");
  open({ view: "pod", namespace: key.slice(0, slash), name: key.slice(slash + 1) });
}

export function PodLine({ cluster, row }: Shown & { row: number }) {
  const { pods } = cluster;
  const place = pods.place[row];
  const [namespace, name] = splitKey(pods.key[row]);
  return (
    <>
      {place >= 0 && (
        <i
          class="dot"
          style={{ "--place": `var(--place-${place % 6})` }}
          title={cluster.state.places[place]}
          aria-hidden="true"
        />
      )}
      <span class="grow clip" title={[pods.key[row], cluster.words.reasons[pods.reason[row]]].filter(Boolean).join("\n")}>
        <span class="what">{name}</span> <span class="faint">{namespace}</span>
      </span>
      {place >= 0 && <span class="visually-hidden">{cluster.state.places[place]}</span>}
      {pods.terminating[row] && <span class="badge">ending</span>}
      {pods.priority[row] !== 0 && (
        <span class="badge" title="priority">
          {pods.priority[row]}
        </span>
      )}
    </>
  );
}

export function splitKey(key: string): [namespace: string, name: string] {
  const slash = key.indexOf("/");
  return [key.slice(0, slash), key.slice(slash + 1)];
}

function findPods(cluster: Cluster, text: string): number[] {
  const found: number[] = [];
  const wanted = text.toLowerCase();
  for (let row = 0; row < cluster.pods.rows.length && found.length < FOUND_MAX; row++) {
    if (cluster.pods.key[row].toLowerCase().includes(wanted)) found.push(row);
  }
  return found;
}
