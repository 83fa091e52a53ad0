// One chart over time, drawn by uPlot; a table of its last values stands beside it for screen readers.

import { useEffect, useRef } from "preact/hooks";
import type { ComponentChildren } from "preact";
import uPlot from "uplot";

import { timeOfDay } from "./format";

export interface Line {
  label: string;
  color: string; // the name of a custom property
  fill?: boolean;
  dash?: number[];
}

interface Props {
  title: string;
  times: number[]; // seconds
  lines: Line[];
  values: (number | null)[][]; // by line
  format: (value: number) => string;
  whole?: boolean; // values are whole numbers
  theme: string; // a change draws with the other colours
  cursor: uPlot.Cursor.Sync["key"];
  range: [begin: number, end: number] | null; // seconds that are shown
  onPick?: (time: number) => void; // a click
  onSelect?: (begin: number, end: number) => void; // a stretch that was drawn over
  choices?: ComponentChildren; // beside the title
}

const WHOLE = [1, 2, 5].flatMap((step) => [0, 1, 2, 3, 4, 5].map((power) => step * 10 ** power)).sort((a, b) => a - b);

function colour(element: Element, name: string): string {
  return getComputedStyle(element).getPropertyValue(name).trim();
}

function axis(element: Element): uPlot.Axis {
  return {
    stroke: colour(element, "--ink-2"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: colour(element, "--line"), width: 1 },
    ticks: { show: false },
  };
}

export function Chart(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const pick = useRef(props.onPick);
  pick.current = props.onPick;
  const select = useRef(props.onSelect);
  select.current = props.onSelect;
  const range = useRef(props.range);
  range.current = props.range;
  const shape = props.lines.map((line) => line.label).join("\n");

  useEffect(() => {
    const element = host.current!;
    const size = () => ({ width: element.clientWidth, height: element.clientHeight });
    const series: uPlot.Series[] = props.lines.map((line) => ({
      label: line.label,
      stroke: colour(element, line.color),
      width: 1.5,
      dash: line.dash,
      fill: line.fill ? `${colour(element, line.color)}22` : undefined,
      points: { show: false },
      spanGaps: true,
    }));
    let selectedAt = -Infinity;
    plot.current = new uPlot(
      {
        ...size(),
        legend: { show: false },
        padding: [8, 26, 0, 0],
        cursor: { y: false, sync: { key: props.cursor }, drag: { x: true, y: false, setScale: false, dist: 6 } },
        scales: { x: { time: true, range: (_plot, low, high) => range.current ?? [low, high] }, y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] } },
        axes: [
          { ...axis(element), size: 22, space: 70, values: (_plot, times) => times.map(timeOfDay) },
          {
            ...axis(element),
            size: 46,
            space: 26,
            ...(props.whole ? { incrs: WHOLE } : {}),
            values: (_plot, values) => values.map((value) => (value === null ? "" : props.format(value))),
          },
        ],
        series: [{}, ...series],
        hooks: {
          setSelect: [
            (drawn) => {
              const { left, width } = drawn.select;
              if (width < 6) return;
              select.current?.(drawn.posToVal(left, "x"), drawn.posToVal(left + width, "x"));
              drawn.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              selectedAt = performance.now();
            },
          ],
        },
      },
      [props.times, ...props.values] as uPlot.AlignedData,
      element,
    );
    const observer = new ResizeObserver(() => plot.current?.setSize(size()));
    observer.observe(element);
    const click = () => {
      if (performance.now() - selectedAt < 300) return; // the end of a selection
      const index = plot.current?.cursor.idx;
      if (index != null) pick.current?.(plot.current!.data[0][index]);
    };
    element.addEventListener("click", click);
    return () => {
      observer.disconnect();
      element.removeEventListener("click", click);
      plot.current?.destroy();
    };
  }, [shape, props.theme]);

  useEffect(() => {
    plot.current?.setData([props.times, ...props.values] as uPlot.AlignedData);
  }, [props.times, props.values, props.range?.[0], props.range?.[1]]);

  const last = (values: (number | null)[]) => values.findLast((value) => value !== null) ?? null;
  return (
    <figure class="chart">
      <figcaption>
        <b>{props.title}</b>
        {props.choices}
        {props.lines.map((line, index) => {
          const value = last(props.values[index] ?? []);
          return (
            <span class="key" key={line.label}>
              <i class={`swatch ${line.dash ? "dashed" : ""}`} style={{ color: `var(${line.color})` }} aria-hidden="true" />
              {line.label} <b class="number">{value === null ? "–" : props.format(value)}</b>
            </span>
          );
        })}
      </figcaption>
      <div class="plot" ref={host} aria-hidden="true" />
    </figure>
  );
}
