// What happened over time, in a window that can be moved and zoomed, and the slider that shows the cluster as
// it was.

import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";

import type { Cluster } from "../model/cluster";
import { isPast, lastAttempt, present, showAt, showAttempt, showPresent } from "../model/live";
import type { Shown } from "../model/live";
import { choice, open } from "../model/route";
import { resource, theme } from "../model/settings";
import { follow, isAll, isFollowing, pan, showAll, shownWindow, showWindow, trends, zoom } from "../model/trends";
import type { Trends } from "../model/trends";
import { Chart } from "../widgets/chart";
import type { Line } from "../widgets/chart";
import { count, dateAndTime, percent, rate, seconds } from "../widgets/format";

const LINES_MAX = 6;

const useBy = choice<string>("use", () => "all"); // or the key of a label
const waitingBy = choice<string>("waiting", () => "place"); // or "cause"

interface Lines {
  lines: Line[];
  values: (number | null)[][];
}

interface Columns {
  times: number[]; // seconds
  at: (number | null)[]; // the point that begins there, if one does
  since: number[]; // the last point that has begun
}

// Stretches without anything are left out by the server; here each has its point, so that counts fall to 0.
function columnsOf({ points, widthMs }: Trends, begin: number, end: number): Columns {
  const columns: Columns = { times: [], at: [], since: [] };
  if (points.length === 0) return columns;
  let next = 0;
  while (next < points.length - 1 && points[next + 1][0] <= begin) next += 1;
  const first = Math.max(points[0][0], begin - (begin % widthMs));
  for (let time = first; time <= end; time += widthMs) {
    while (next < points.length - 1 && points[next + 1][0] <= time) next += 1;
    columns.times.push(time / 1000);
    columns.at.push(points[next][0] === time ? next : null);
    columns.since.push(next);
  }
  return columns;
}

export function TimePanel({ cluster, version }: Shown) {
  const found = trends.value;
  const shown = shownWindow.value;
  const columns = useMemo(
    () => (found && shown ? columnsOf(found, shown.begin, shown.end) : { times: [], at: [], since: [] }),
    [found],
  );
  const charts = useMemo(
    () => ({
      use: useLines(cluster, found, columns),
      waiting: waitingLines(cluster, found, columns),
      attempts: attemptLines(found, columns),
      latency: latencyLines(found, columns),
    }),
    [columns, resource.value, useBy.current.value, waitingBy.current.value],
  );
  const common = {
    times: columns.times,
    theme: theme.value,
    cursor: "page",
    range: shown ? ([shown.begin / 1000, shown.end / 1000] as [number, number]) : null,
    onPick: (time: number) => void showAt(time * 1000),
    onSelect: (begin: number, end: number) => showWindow(begin * 1000, end * 1000),
  };
  const keys = [...new Set((found?.groups ?? []).map((group) => group.key).filter(Boolean))];
  return (
    <section class="panel time" aria-label="Over time">
      <div class="charts">
        <Chart
          {...common}
          {...charts.use}
          title={`Requested ${resource.value}`}
          format={percent}
          choices={
            <select aria-label="Requested by" value={useBy.current.value} onChange={(event) => useBy.set(event.currentTarget.value)}>
              <option value="all">all nodes</option>
              {keys.map((key) => (
                <option key={key} value={key}>
                  by {key.slice(key.indexOf("/") + 1)}
                </option>
              ))}
            </select>
          }
        />
        <Chart
          {...common}
          {...charts.waiting}
          title="Waiting"
          format={count}
          whole
          choices={
            <select aria-label="Waiting by" value={waitingBy.current.value} onChange={(event) => waitingBy.set(event.currentTarget.value)}>
              <option value="place">by place</option>
              <option value="cause">by cause</option>
            </select>
          }
        />
        <Chart {...common} {...charts.attempts} title={found && found.widthMs > 1000 ? `Attempts in ${seconds(found.widthMs / 1000)}` : "Attempts a second"} format={rate} whole />
        <Chart {...common} {...charts.latency} title="Latency" format={seconds} />
      </div>
      <Timeline cluster={cluster} version={version} />
    </section>
  );
}

function useLines(cluster: Cluster, found: Trends | null, { since }: Columns): Lines {
  const at = Math.max(0, cluster.words.resources.findIndex((entry) => entry.name === resource.value));
  const wanted = useBy.current.value;
  const groups = (found?.groups ?? [])
    .map((group, index) => ({ ...group, index }))
    .filter((group) => group.key === (wanted === "all" ? "" : wanted))
    .slice(0, LINES_MAX);
  const share = (point: number, group: number) => {
    const thousandths = found?.points[point][8][group]?.[at] ?? -1;
    return thousandths < 0 ? null : thousandths / 1000;
  };
  return {
    lines: groups.map((group, index) => ({ label: group.value || "all nodes", color: `--place-${index}`, fill: groups.length === 1 })),
    values: groups.map((group) => since.map((point) => share(point, group.index))),
  };
}

function waitingLines(cluster: Cluster, found: Trends | null, { since }: Columns): Lines {
  if (waitingBy.current.value === "cause") return causeLines(cluster, found, since);
  const values = cluster.state.places.map((_, place) => since.map((point) => found?.points[point][6][place] ?? 0));
  const places = cluster.state.places.map((label, index) => ({ label, color: `--place-${index % 6}`, index }));
  const used = places.filter(({ index }) => values[index].some((number) => number > 0));
  const lines = used.length > 0 ? used : places.slice(0, 1);
  return { lines, values: lines.map(({ index }) => values[index]) };
}

function causeLines(cluster: Cluster, found: Trends | null, since: number[]): Lines {
  const most = new Map<number, number>();
  for (const point of new Set(since)) {
    for (const [cause, pods] of found?.points[point][7] ?? []) most.set(cause, Math.max(most.get(cause) ?? 0, pods));
  }
  const causes = [...most].sort(([, a], [, b]) => b - a).slice(0, LINES_MAX).map(([cause]) => cause);
  const pods = (point: number, cause: number) => found?.points[point][7].find(([word]) => word === cause)?.[1] ?? 0;
  return {
    lines: causes.map((cause, index) => ({ label: cluster.words.rejectors[cause] ?? "", color: `--place-${index % 6}` })),
    values: causes.map((cause) => since.map((point) => pods(point, cause))),
  };
}

function attemptLines(found: Trends | null, { at }: Columns): Lines {
  const values = ([1, 2, 3] as const).map((field) => at.map((point) => (point === null ? 0 : (found?.points[point][field] ?? 0))));
  const lines: Line[] = [
    { label: "scheduled", color: "--place-5", fill: true },
    { label: "failed", color: "--place-2" },
    { label: "evicted", color: "--place-3", dash: [3, 3] },
  ];
  return { lines, values };
}

function latencyLines(found: Trends | null, { at }: Columns): Lines {
  const values = ([4, 5] as const).map((field) =>
    at.map((point) => {
      const entry = point === null ? undefined : found?.points[point];
      return entry && entry[1] + entry[2] > 0 ? entry[field] / 1000 : null;
    }),
  );
  const lines: Line[] = [
    { label: "p50", color: "--place-0" },
    { label: "p99", color: "--place-3", dash: [3, 3] },
  ];
  return { lines, values };
}

function WindowControls() {
  return (
    <span class="joined" role="group" aria-label="Window of the charts">
      <button onClick={() => pan(-0.5)} title="Earlier">
        « <span class="visually-hidden">Earlier</span>
      </button>
      <button onClick={() => zoom(2)} title="Longer">
        − <span class="visually-hidden">A longer window</span>
      </button>
      <button onClick={() => zoom(0.5)} title="Shorter">
        + <span class="visually-hidden">A shorter window</span>
      </button>
      <button onClick={() => pan(0.5)} title="Later">
        » <span class="visually-hidden">Later</span>
      </button>
      <button aria-pressed={isFollowing.value} onClick={follow}>
        Follow
      </button>
      <button aria-pressed={isAll.value} onClick={showAll}>
        Whole
      </button>
    </span>
  );
}

function Timeline({ cluster }: Shown) {
  const timer = useRef(0);
  const dragged = useSignal<number | null>(null);
  const span = present.value;
  if (!span) return null;
  const shown = dragged.value ?? (isPast.value ? cluster.state.clock.time : span.time);
  const move = (time: number) => {
    dragged.value = time;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      dragged.value = null;
      if (time >= span.time - 1) showPresent();
      else void showAt(time);
    }, 120);
  };
  const step = (direction: number) => {
    const last = cluster.attempts.at(-1)?.id ?? 0;
    const next = isPast.value ? last + direction : last;
    if (next < 1) return;
    if (next > lastAttempt()) {
      showPresent();
      return;
    }
    void showAttempt(next);
    open({ view: "attempt", id: next });
  };
  return (
    <div class="timeline">
      <WindowControls />
      <span class="joined" role="group" aria-label="Steps through attempts">
        <button onClick={() => step(-1)} title="Back to the attempt before">
          ◀ <span class="visually-hidden">Back to the attempt before</span>
        </button>
        <button onClick={() => step(1)} disabled={!isPast.value} title="On to the next attempt">
          ▶ <span class="visually-hidden">On to the next attempt</span>
        </button>
      </span>
      <input
        type="range"
        aria-label="Time shown"
        aria-valuetext={isPast.value ? dateAndTime(shown / 1000) : "now"}
        min={Math.min(span.begin, span.time - 1)}
        max={span.time}
        step={1}
        value={shown}
        onInput={(event) => move(Number(event.currentTarget.value))}
      />
      <span class="number">{dateAndTime(shown / 1000)}</span>
      <button aria-pressed={!isPast.value} onClick={showPresent}>
        Live
      </button>
    </div>
  );
}
