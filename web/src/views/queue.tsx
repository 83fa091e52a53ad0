// Pods that wait: at which place, why, and which.

import { useMemo } from "preact/hooks";

import type { Cluster } from "../model/cluster";
import type { Shown } from "../model/live";
import { choice, open, route } from "../model/route";
import { count } from "../widgets/format";
import { VirtualList } from "../widgets/virtual_list";

const FOUND_MAX = 500;
const NOT_TRIED = "not tried yet";

const ABOUT: Record<string, string> = {
  active: "tried as soon as it is their turn",
  backoff: "wait a moment after an attempt that failed",
  "error backoff": "wait a moment after an error",
  unschedulable: "no node fits; wait for a change that may help",
  gated: "held back before any attempt",
  "in flight": "being decided on or bound",
};

const place = choice<string>("place", () => "");
const rejected = choice<string>("rejected", () => "");
const text = choice<string>("pod", () => "");
const listed = choice<string>("list", () => "pods"); // or "owners"
const owner = choice<string>("owner", () => "");

export function Queue({ cluster, version }: Shown) {
  const { queue, places } = cluster.state;
  const total = queue.places.reduce((sum, number) => sum + number, 0);
  const placeIndex = places.indexOf(place.current.value);
  const isChosen = place.current.value !== "" || rejected.current.value !== "" || owner.current.value !== "";
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
              aria-pressed={placeIndex === index}
              title={ABOUT[name]}
              style={{ "--place": `var(--place-${index % 6})` }}
              onClick={() => place.set(placeIndex === index ? "" : name)}
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
            {queue.rejectors.map(([word, number]) => {
              const name = cluster.words.rejectors[word] || NOT_TRIED;
              const isHere = rejected.current.value === name;
              return (
                <li key={word}>
                  <button aria-pressed={isHere} onClick={() => rejected.set(isHere ? "" : name)}>
                    <span>{name}</span>
                    <b class="number">{count(number)}</b>
                  </button>
                </li>
              );
            })}
          </ul>
        </div>
      )}
      <div class="listed">
        <div class="find">
          <input
            type="search"
            aria-label="Find pods by name, also those on nodes"
            placeholder="Find a pod by name"
            value={text.current.value}
            onInput={(event) => text.set(event.currentTarget.value)}
          />
          {isChosen && (
            <button
              onClick={() => {
                place.set("");
                rejected.set("");
                owner.set("");
              }}
            >
              All
            </button>
          )}
        </div>
        {!text.current.value && (
          <div class="find list-choice">
            {owner.current.value ? (
              <button onClick={() => owner.set("")} title="All owners">
                ◀ <span class="clip">{owner.current.value}</span>
              </button>
            ) : (
              <span class="joined" role="group" aria-label="List">
                <button aria-pressed={listed.current.value === "pods"} onClick={() => listed.set("pods")}>
                  Pods
                </button>
                <button aria-pressed={listed.current.value === "owners"} onClick={() => listed.set("owners")}>
                  By owner
                </button>
              </span>
            )}
          </div>
        )}
        {listed.current.value === "owners" && !owner.current.value && !text.current.value ? (
          <OwnerList cluster={cluster} version={version} />
        ) : (
          <PodList cluster={cluster} version={version} />
        )}
      </div>
    </section>
  );
}

function waitingRows(cluster: Cluster, of: string): number[] {
  const name = rejected.current.value;
  const word = cluster.words.rejectors.indexOf(name === NOT_TRIED ? "" : name);
  return cluster.waiting(cluster.state.places.indexOf(place.current.value), name ? word : -1, of);
}

function PodList({ cluster, version }: Shown) {
  const wanted = text.current.value;
  const rows = useMemo(
    () => (wanted ? findPods(cluster, wanted) : waitingRows(cluster, owner.current.value)),
    [cluster, version, place.current.value, rejected.current.value, owner.current.value, wanted],
  );
  const opened = route.value.view === "pod" ? `${route.value.namespace}/${route.value.name}` : "";
  return (
    <VirtualList
      label={wanted ? "Pods with this name" : "Waiting pods"}
      count={rows.length}
      rowHeight={26}
      current={opened ? rows.findIndex((row) => cluster.pods.key[row] === opened) : -1}
      empty={wanted ? "No pod has this in its name" : "No pod waits"}
      onActivate={(index) => openPod(cluster.pods.key[rows[index]])}
      row={(index) => <PodLine cluster={cluster} version={version} row={rows[index]} />}
    />
  );
}

// Waiting pods by what made them, the most first; a pod without an owner stands alone.
function OwnerList({ cluster, version }: Shown) {
  const owners = useMemo(() => {
    const counts = new Map<string, number[]>();
    for (const row of waitingRows(cluster, "")) {
      const name = cluster.ownerOf(row) || cluster.pods.key[row];
      const found = counts.get(name);
      if (found) found.push(row);
      else counts.set(name, [row]);
    }
    return [...counts].sort(([a, first], [b, second]) => second.length - first.length || (a < b ? -1 : 1));
  }, [cluster, version, place.current.value, rejected.current.value]);
  return (
    <VirtualList
      label="Owners of waiting pods"
      count={owners.length}
      rowHeight={26}
      empty="No pod waits"
      onActivate={(index) => {
        const [name, rows] = owners[index];
        if (cluster.ownerOf(rows[0])) owner.set(name);
        else openPod(name);
      }}
      row={(index) => {
        const [name, rows] = owners[index];
        const namespace = name.slice(0, name.indexOf("/"));
        const last = name.slice(name.lastIndexOf("/") + 1);
        return (
          <>
            <span class="grow clip" title={name}>
              <span class="what">{last}</span> <span class="faint">{namespace}</span>
            </span>
            <b class="number">×{count(rows.length)}</b>
          </>
        );
      }}
    />
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
