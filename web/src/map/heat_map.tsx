// Nodes as a map: a canvas that behaves as one list box, so that keys and screen readers reach every node.

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Cluster } from "../model/cluster";
import type { Shown } from "../model/live";
import { open, route } from "../model/route";
import { grouping, reducedMotion, theme } from "../model/settings";
import { drawn } from "../model/timing";
import { verdicts } from "../model/verdicts";
import { conditionOf, describe, useOf } from "./describe";
import { BARS_FROM, draw, Verdict } from "./draw";
import type { Ink } from "./draw";
import { Flow } from "./flow";
import { groupNodes } from "./grouping";
import { gapOf, layOut, neighbour, positionAt } from "./layout";
import type { Placed } from "./layout";
import { paletteOf } from "./palette";

interface Props extends Shown {
  resource: number;
  found: Set<string> | null; // the nodes that were searched for
}

function inkOf(element: Element): Ink {
  const style = getComputedStyle(element);
  const value = (name: string) => style.getPropertyValue(name).trim();
  return {
    text: value("--ink"),
    faint: value("--ink-2"),
    line: value("--line"),
    missing: value("--line-2"),
    alert: value("--alert-mark"),
    focus: value("--focus"),
    surface: value("--surface"),
  };
}

function useSize(element: { current: HTMLElement | null }): { width: number; height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const box = element.current!;
    const measure = () =>
      setSize((old) =>
        old.width === box.clientWidth && old.height === box.clientHeight
          ? old
          : { width: box.clientWidth, height: box.clientHeight },
      );
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return size;
}

export function HeatMap({ cluster, version, resource, found }: Props) {
  const viewport = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const flowCanvas = useRef<HTMLCanvasElement>(null);
  const flow = useRef<Flow | null>(null);
  const scrollTop = useSignal(0);
  const focused = useSignal(-1); // node row: positions change when nodes come and go
  const hasFocus = useSignal(false);
  const [pointed, setPointed] = useState<{ row: number; x: number; y: number } | null>(null);
  const size = useSize(viewport);
  const key = grouping.value;

  const groups = useMemo(() => groupNodes(cluster, key), [cluster, cluster.layoutVersion, key]);
  const placed = useMemo(
    () => layOut(groups, cluster.nodes.rows.length, Math.max(1, size.width - 4), size.height - 4),
    [groups, size.width, size.height],
  );
  const position = focused.value >= 0 ? (placed.positionOf[focused.value] ?? -1) : -1;
  const opened = route.value.view === "node" ? (cluster.nodes.byName.get(route.value.name) ?? -1) : -1;
  const owners = useMemo(
    () => (placed.cell > BARS_FROM ? cluster.ownersByNode() : null),
    [cluster, version, placed.cell > BARS_FROM],
  );
  const marks = useMemo(() => marksOf(cluster, found), [cluster, cluster.layoutVersion, verdicts.value, found]);

  useLayoutEffect(() => {
    const target = canvas.current!;
    if (size.width === 0) return;
    const ratio = devicePixelRatio;
    const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
    if (target.width !== width || target.height !== height) {
      target.width = width;
      target.height = height;
    }
    const context = target.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 2 * ratio, 2 * ratio);
    context.clearRect(-2, -2, size.width, size.height);
    draw(context, {
      placed,
      groups,
      nodes: cluster.nodes,
      resource,
      resources: cluster.words.resources.map((entry) => entry.name),
      palette: paletteOf(theme.value),
      ink: inkOf(target),
      top: scrollTop.value,
      height: size.height,
      focused: hasFocus.value ? position : -1,
      opened,
      owners,
      verdicts: marks,
    });
    drawn();
  }, [version, cluster, placed, groups, resource, theme.value, scrollTop.value, position, hasFocus.value, opened, marks]);

  useEffect(() => {
    flow.current = new Flow(flowCanvas.current!);
    return () => flow.current?.stop();
  }, []);
  useEffect(() => launchFlights(cluster, placed, viewport.current!, flow.current!), [version]);

  const scrollTo = (at: number) => {
    const box = viewport.current!;
    const y = placed.y[at];
    if (y < box.scrollTop + 20) box.scrollTop = y - 20;
    if (y + placed.cell > box.scrollTop + box.clientHeight) box.scrollTop = y + placed.cell - box.clientHeight + 4;
  };
  const focusOn = (at: number) => {
    const next = Math.max(0, Math.min(placed.order.length - 1, at));
    focused.value = placed.order[next];
    scrollTo(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (placed.order.length === 0) return;
    const from = Math.max(0, position);
    const next = stepFor(event.key, placed, from);
    if (next !== undefined) {
      event.preventDefault();
      focusOn(next);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      open({ view: "node", name: cluster.nodes.name[placed.order[from]] });
    }
  };
  const rowUnder = (event: MouseEvent): number => {
    const box = viewport.current!.getBoundingClientRect();
    const at = positionAt(placed, event.clientX - box.left - 2, event.clientY - box.top - 2 + viewport.current!.scrollTop);
    return at < 0 ? -1 : placed.order[at];
  };
  const onPointerMove = (event: PointerEvent) => {
    const row = rowUnder(event);
    setPointed(row < 0 ? null : { row, x: event.clientX, y: event.clientY });
  };
  const onClick = (event: MouseEvent) => {
    const row = rowUnder(event);
    if (row < 0) return;
    focused.value = row;
    open({ view: "node", name: cluster.nodes.name[row] });
  };

  const row = position >= 0 ? focused.value : -1;
  const option = row >= 0 ? `node-${cluster.nodes.id[row]}` : undefined;
  return (
    <>
      <div
        ref={viewport}
        class="map"
        role="listbox"
        tabIndex={0}
        aria-label={`Nodes by ${cluster.words.resources[resource]?.name ?? ""}; arrow keys move, Enter opens`}
        aria-activedescendant={option}
        onScroll={() => (scrollTop.value = viewport.current!.scrollTop)}
        onFocus={() => {
          hasFocus.value = true;
          if (position < 0 && placed.order.length) focused.value = placed.order[0];
        }}
        onBlur={() => (hasFocus.value = false)}
        onKeyDown={onKeyDown}
        onClick={onClick}
        onPointerMove={onPointerMove}
        onPointerLeave={() => setPointed(null)}
      >
        <canvas ref={canvas} aria-hidden="true" />
        <div class="map-height" style={{ height: `${placed.height}px` }} role="presentation" />
        {row >= 0 && (
          <div
            id={option}
            class="visually-hidden"
            role="option"
            aria-selected={row === opened}
            aria-posinset={position + 1}
            aria-setsize={placed.order.length}
          >
            {describe(cluster, row, resource)}, in {groups[groupAt(placed, position)].label}
          </div>
        )}
      </div>
      <canvas ref={flowCanvas} class="flow" aria-hidden="true" />
      {pointed && cluster.nodes.alive[pointed.row] && <Tip cluster={cluster} version={version} {...pointed} />}
    </>
  );
}

function Tip({ cluster, row, x, y }: Shown & { row: number; x: number; y: number }) {
  const left = Math.min(x + 14, innerWidth - 270);
  const top = y + 190 > innerHeight ? y - 14 : y + 16;
  const above = y + 190 > innerHeight;
  return (
    <div class={`tip${above ? " above" : ""}`} style={{ left: `${left}px`, top: `${top}px` }} aria-hidden="true">
      <b>{cluster.nodes.name[row]}</b>
      <span class={`state ${conditionOf(cluster, row).replace(" ", "-")}`}>{conditionOf(cluster, row)}</span>
      <dl>
        {cluster.words.resources.map((resource, index) =>
          cluster.nodes.allocatable[row][index] ? (
            <div key={resource.name}>
              <dt>{resource.name}</dt>
              <dd>{useOf(cluster, row, index)}</dd>
            </div>
          ) : null,
        )}
      </dl>
    </div>
  );
}

function stepFor(key: string, placed: Placed, from: number): number | undefined {
  switch (key) {
    case "ArrowRight":
      return from + 1;
    case "ArrowLeft":
      return from - 1;
    case "ArrowDown":
      return neighbour(placed, from, true);
    case "ArrowUp":
      return neighbour(placed, from, false);
    case "Home":
      return 0;
    case "End":
      return placed.order.length - 1;
    case "PageDown":
      return placed.starts.find((start) => start > from) ?? placed.order.length - 1;
    case "PageUp":
      return placed.starts.findLast((start) => start < from) ?? 0;
    default:
      return undefined;
  }
}

function groupAt(placed: Placed, position: number): number {
  return placed.starts.findLastIndex((start) => start <= position);
}

// What the opened pod's explanation says about each node; without one, which nodes were searched for.
function marksOf(cluster: Cluster, found: Set<string> | null): Uint8Array | null {
  const said = verdicts.value ?? (found && new Map([...found].map((name) => [name, Verdict.Feasible])));
  if (!said) return null;
  const marks = new Uint8Array(cluster.nodes.rows.length).fill(Verdict.Rejected);
  for (const [name, verdict] of said) {
    const row = cluster.nodes.byName.get(name);
    if (row !== undefined) marks[row] = verdict;
  }
  return marks;
}

function launchFlights(cluster: Cluster, placed: Placed, viewport: HTMLElement, flow: Flow): void {
  const flights = cluster.flights.splice(0);
  if (reducedMotion.value || document.hidden || flights.length === 0) return;
  const box = viewport.getBoundingClientRect();
  const side = placed.cell - gapOf(placed.cell);
  flights.forEach((flight, index) => {
    const source = document.querySelector(`[data-place="${flight.place}"]`) ?? document.querySelector("[data-place]");
    const position = placed.positionOf[flight.node] ?? -1;
    if (!source || position < 0) return;
    const from = source.getBoundingClientRect();
    const to = {
      x: box.left + 2 + placed.x[position] + side / 2,
      y: box.top + 2 + placed.y[position] + side / 2 - viewport.scrollTop,
    };
    if (to.y < box.top || to.y > box.bottom) return;
    flow.launch({ x: from.right - 8, y: from.top + from.height / 2 }, to, side, index * 12);
  });
}
