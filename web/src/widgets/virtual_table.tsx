// A table of any length with headings that sort it; only the visible rows are in the document.
//
// One row is in the tab order at a time: arrow keys move it, Enter opens it.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

export interface Column {
  key: string;
  title: string;
  width: number; // at least, in pixels; what is left is shared in these proportions
  isRight?: boolean;
  isHead?: boolean; // names the row
}

interface Props {
  label: string;
  columns: Column[];
  count: number;
  rowHeight: number;
  sorted: { key: string; isDown: boolean };
  onSort: (key: string) => void;
  current: number;
  onActivate: (index: number) => void;
  cell: (index: number, column: number) => ComponentChildren;
}

const OVERSCAN = 6;
// As in the style.
const GAP = 10;
const MARGIN = 12;

export function VirtualTable(props: Props) {
  const { columns, count, rowHeight } = props;
  const viewport = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState({ first: 0, last: 40 });
  const [active, setActive] = useState(0);
  const wantsFocus = useRef(false);
  const focusable = Math.min(active, Math.max(0, count - 1));
  const template = columns.map(({ width }) => `minmax(${width}px, ${width}fr)`).join(" ");
  const least = columns.reduce((sum, { width }) => sum + width + GAP, 2 * MARGIN - GAP);

  const measure = () => {
    const box = viewport.current;
    if (!box) return;
    const first = Math.max(0, Math.floor(box.scrollTop / rowHeight) - OVERSCAN);
    const last = Math.ceil((box.scrollTop + box.clientHeight) / rowHeight) + OVERSCAN;
    setRange((old) => (old.first === first && old.last === last ? old : { first, last }));
  };
  useLayoutEffect(measure, [count, rowHeight]);
  useEffect(() => {
    const observer = new ResizeObserver(measure);
    observer.observe(viewport.current!);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (!wantsFocus.current) return;
    const element = viewport.current?.querySelector<HTMLElement>('[role="row"][tabindex="0"]');
    if (element) {
      wantsFocus.current = false;
      element.focus({ preventScroll: true });
    }
  });

  const move = (to: number) => {
    const box = viewport.current!;
    const next = Math.max(0, Math.min(count - 1, to));
    const top = next * rowHeight;
    const seen = box.clientHeight - rowHeight; // below the headings
    if (top < box.scrollTop) box.scrollTop = top;
    if (top + rowHeight > box.scrollTop + seen) box.scrollTop = top + rowHeight - seen;
    wantsFocus.current = true;
    setActive(next);
    measure();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (!(event.target as HTMLElement).matches('[role="row"]')) return;
    const page = Math.max(1, Math.floor((viewport.current?.clientHeight ?? 0) / rowHeight) - 2);
    const steps: Record<string, number> = {
      ArrowDown: focusable + 1,
      ArrowUp: focusable - 1,
      PageDown: focusable + page,
      PageUp: focusable - page,
      Home: 0,
      End: count - 1,
    };
    if (event.key in steps) {
      event.preventDefault();
      move(steps[event.key]);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      props.onActivate(focusable);
    }
  };

  const indexes = new Set<number>();
  for (let index = range.first; index < Math.min(count, range.last); index++) indexes.add(index);
  if (count > 0) indexes.add(focusable); // the row with the focus stays in the document
  return (
    <div
      ref={viewport}
      class="virtual-table"
      role="table"
      aria-label={props.label}
      aria-rowcount={count + 1}
      onScroll={measure}
      onKeyDown={onKeyDown}
    >
      <div class="head" role="rowgroup" style={{ minWidth: `${least}px` }}>
        <div role="row" aria-rowindex={1} class="line-of-cells" style={{ gridTemplateColumns: template }}>
          {columns.map((column) => {
            const isSorted = props.sorted.key === column.key;
            return (
              <div
                key={column.key}
                role="columnheader"
                aria-sort={isSorted ? (props.sorted.isDown ? "descending" : "ascending") : "none"}
                class={column.isRight ? "right" : ""}
              >
                <button class="plain" title={column.key} onClick={() => props.onSort(column.key)}>
                  <span class="clip">{column.title}</span>
                  <span aria-hidden="true">{isSorted ? (props.sorted.isDown ? "▼" : "▲") : ""}</span>
                </button>
              </div>
            );
          })}
        </div>
      </div>
      {count === 0 ? (
        <div role="row">
          <div role="cell" class="nothing">
            No node is like this
          </div>
        </div>
      ) : (
        <div class="body" role="rowgroup" style={{ height: `${count * rowHeight}px`, minWidth: `${least}px` }}>
          {[...indexes].map((index) => (
            <div
              key={index}
              role="row"
              aria-rowindex={index + 2}
              class={`line-of-cells item${props.current === index ? " current" : ""}`}
              tabIndex={index === focusable ? 0 : -1}
              style={{ gridTemplateColumns: template, top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
              onClick={() => {
                setActive(index);
                props.onActivate(index);
              }}
            >
              {columns.map((column, at) => (
                <div key={column.key} role={column.isHead ? "rowheader" : "cell"} class={`clip${column.isRight ? " right" : ""}`}>
                  {props.cell(index, at)}
                </div>
              ))}
            </div>
          ))}
        </div>
      )}
    </div>
  );
}
