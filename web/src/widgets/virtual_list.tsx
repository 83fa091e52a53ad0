// A list of any length of which only the visible rows are in the document.
//
// One row is in the tab order at a time; arrow keys move it (roving focus), Enter activates it.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

interface Props {
  label: string;
  count: number;
  rowHeight: number;
  row: (index: number) => ComponentChildren;
  onActivate: (index: number) => void;
  current?: number; // the opened row, marked as such
  empty?: ComponentChildren;
  class?: string;
}

const OVERSCAN = 6;

export function VirtualList(props: Props) {
  const { count, rowHeight } = props;
  const viewport = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState({ first: 0, last: 40 });
  const [active, setActive] = useState(0);
  const wantsFocus = useRef(false);
  const focusable = Math.min(active, Math.max(0, count - 1));

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
    const element = viewport.current?.querySelector<HTMLElement>('.row[tabindex="0"]');
    if (element) {
      wantsFocus.current = false;
      element.focus({ preventScroll: true });
    }
  });

  const move = (to: number) => {
    const box = viewport.current!;
    const next = Math.max(0, Math.min(count - 1, to));
    const top = next * rowHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    if (top + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + rowHeight - box.clientHeight;
    wantsFocus.current = true;
    setActive(next);
    measure();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((viewport.current?.clientHeight ?? 0) / rowHeight) - 1);
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
    }
  };

  const first = Math.min(range.first, Math.max(0, count - 1));
  const last = Math.min(count, range.last);
  const rows = [];
  const indexes = new Set<number>();
  for (let index = first; index < last; index++) indexes.add(index);
  if (count > 0) indexes.add(focusable); // the row with the focus stays in the document
  for (const index of indexes) {
    rows.push(
      <div
        key={index}
        class="item"
        role="listitem"
        aria-setsize={count}
        aria-posinset={index + 1}
        style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
      >
        <button
          class="row"
          aria-current={props.current === index ? "true" : undefined}
          tabIndex={index === focusable ? 0 : -1}
          onClick={() => {
            setActive(index);
            props.onActivate(index);
          }}
        >
          {props.row(index)}
        </button>
      </div>,
    );
  }
  return (
    <div
      ref={viewport}
      class={`virtual ${props.class ?? ""}`}
      role="list"
      aria-label={props.label}
      onScroll={measure}
      onKeyDown={onKeyDown}
    >
      {count === 0 ? (
        <div class="nothing" role="listitem">
          {props.empty ?? "None"}
        </div>
      ) : (
        <div class="virtual-inner" role="presentation" style={{ height: `${count * rowHeight}px` }}>
          {rows}
        </div>
      )}
    </div>
  );
}
