// What happened over time, and the slider that shows the cluster as it was.

import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";

import type { Cluster } from "../model/cluster";
import { isPast, lastAttempt, present, showAt, showAttempt, showPresent } from "../model/live";
import type { Shown } from "../model/live";
import { open } from "../model/route";
import { theme } from "../model/settings";
import { Chart } from "../widgets/chart";
import type { Line } from "../widgets/chart";
import { count, dateAndTime, rate, seconds } from "../widgets/format";

const WINDOW_S = 600;

interface Columns {
  times: number[];
  scheduled: number[];
  failed: number[];
  p50: (number | null)[];
  p99: (number | null)[];
  places: number[][];
}

// Seconds without anything are left out by the server; here each has its point, so that lines fall to 0.
function columnsOf(cluster: Cluster): Columns {
  const places = cluster.state.places.length;
  const columns: Columns = {
    times: [],
    scheduled: [],
    failed: [],
    p50: [],
    p99: [],
    places: Array.from({ length: places }, () => []),
  };
  const now = Math.floor(cluster.state.clock.time / 1000);
  const first = Math.floor((cluster.series[0]?.[0] ?? now * 1000) / 1000);
  // Without the current second, which has only begun, unless it is all there is.
  const end = Math.max(first, now - 1);
  const begin = Math.max(end - WINDOW_S, first);
  let next = cluster.series.findIndex((point) => point[0] >= begin * 1000);
  let depth = next > 0 ? cluster.series[next - 1][6] : new Array<number>(places).fill(0);
  for (let second = begin; second <= end; second++) {
    const point = next >= 0 ? cluster.series[next] : undefined;
    const isHere = point !== undefined && Math.floor(point[0] / 1000) <= second;
    if (isHere) {
      next += 1;
      depth = point[6];
    }
    columns.times.push(second);
    columns.scheduled.push(isHere ? point[1] : 0);
    columns.failed.push(isHere ? point[2] + point[3] : 0);
    const tried = isHere && point[1] + point[2] + point[3] > 0;
    columns.p50.push(tried ? point[4] / 1000 : null);
    columns.p99.push(tried ? point[5] / 1000 : null);
    for (let place = 0; place < places; place++) columns.places[place].push(depth[place] ?? 0);
  }
  return columns;
}

export function TimePanel({ cluster, version }: Shown) {
  const columns = useMemo(() => columnsOf(cluster), [cluster, version]);
  const throughput = useMemo(() => [columns.scheduled, columns.failed], [columns]);
  const latency = useMemo(() => [columns.p50, columns.p99], [columns]);
  const used = cluster.state.places.map((_, index) => columns.places[index].some((number) => number > 0)).join();
  const depth = useMemo(() => depthOf(cluster, columns, used), [columns, used]);
  const pick = (time: number) => void showAt(time * 1000);
  return (
    <section class="panel time" aria-label="Over time">
      <div class="charts">
        <Chart
          title="Attempts a second"
          times={columns.times}
          values={throughput}
          lines={[
            { label: "scheduled", color: "--place-5", fill: true },
            { label: "failed", color: "--place-2" },
          ]}
          format={rate}
          whole
          theme={theme.value}
          cursor="page"
          onPick={pick}
        />
        <Chart
          title="Latency"
          times={columns.times}
          values={latency}
          lines={[
            { label: "p50", color: "--place-0" },
            { label: "p99", color: "--place-3", dash: [3, 3] },
          ]}
          format={seconds}
          theme={theme.value}
          cursor="page"
          onPick={pick}
        />
        <Chart
          title="Waiting"
          times={columns.times}
          values={depth.values}
          lines={depth.lines}
          format={count}
          whole
          theme={theme.value}
          cursor="page"
          onPick={pick}
        />
      </div>
      <Timeline cluster={cluster} version={version} />
    </section>
  );
}

// The places where a pod was in this time, or all of them if none was anywhere.
function depthOf(cluster: Cluster, columns: Columns, used: string): { lines: Line[]; values: number[][] } {
  const places = cluster.state.places.map((label, index) => ({ label, color: `--place-${index % 6}`, index }));
  const isUsed = used.split(",").map((each) => each === "true");
  const shown = places.filter(({ index }) => isUsed[index]);
  const lines = shown.length > 0 ? shown : places.slice(0, 1);
  return { lines, values: lines.map(({ index }) => columns.places[index]) };
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
