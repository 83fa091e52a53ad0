// A plan of evictions: nodes before and after side by side, moved pods as lines, up to a step. Reports
// have the same (`report.tsx`).

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { PlanMove, PlannedNode, PlanView } from "../model/server";

const ROW = 16;
const PITCH = 20;
const NAME = 190;
const BAR = 170;
const BETWEEN = 200;
const TOP = 22;
const RIGHT = NAME + BAR + BETWEEN;
const WIDTH = RIGHT + BAR + NAME;
const NAME_LENGTH = 20;

interface NodeState {
  requested: number[];
  pods: number;
  isClosed: boolean;
}

// What each node has after the first steps.
function stateAfter(view: PlanView, count: number): NodeState[] {
  const state = view.nodes.map(({ requested, pods, isClosed }) => ({ requested: [...requested], pods, isClosed }));
  const add = (place: number, move: PlanMove, sign: number) => {
    if (place < 0) return;
    state[place].pods += sign;
    move.requested.forEach((amount, index) => (state[place].requested[index] += sign * amount));
  };
  for (const step of view.steps.slice(0, count)) {
    if (step.node >= 0) state[step.node].isClosed = step.action === "cordon";
    for (const move of step.moves) {
      add(move.source, move, -1);
      add(move.target, move, 1);
    }
  }
  return state;
}

function shareOf(node: PlannedNode, state: NodeState, resource: number): number {
  return node.allocatable[resource] > 0 ? state.requested[resource] / node.allocatable[resource] : 0;
}

export function PlanPicture({ view }: { view: PlanView }) {
  const last = view.steps.length;
  const step = useSignal(last);
  const resource = useSignal(0);
  useEffect(() => {
    step.value = last;
    resource.value = 0;
  }, [view]);
  const count = Math.min(step.value, last);
  const go = (by: number) => (step.value = Math.max(0, Math.min(last, count + by)));
  const figure = count ? view.steps[count - 1].figure : view.figureBefore;
  return (
    <figure class="plan-picture">
      <div class="plan-tools">
        <button type="button" aria-label="One step back" onClick={() => go(-1)}>
          ◀
        </button>
        <input
          type="range"
          min="0"
          max={last}
          aria-label="Step of the plan"
          value={count}
          onInput={(event) => (step.value = Number(event.currentTarget.value))}
        />
        <button type="button" aria-label="One step on" onClick={() => go(1)}>
          ▶
        </button>
        <select
          aria-label="Resource"
          value={String(resource.value)}
          onChange={(event) => (resource.value = Number(event.currentTarget.value))}
        >
          {view.resources.map((name, index) => (
            <option key={name} value={String(index)}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <figcaption aria-live="polite">
        Step {count} of {last}: {count ? view.steps[count - 1].text : "before the first step"}. {view.goal}: {figure}{" "}
        {view.unit}
      </figcaption>
      <Course view={view} count={count} />
      {view.leftOut > 0 && <p class="faint">Not shown, as the plan does not touch them: {view.leftOut} nodes.</p>}
      <div class="plan-scroll" tabIndex={0} role="group" aria-label="Nodes before and after">
        <Nodes view={view} count={count} resource={Math.min(resource.value, view.resources.length - 1)} />
      </div>
    </figure>
  );
}

// The figure after each step, with a point at the one that is shown.
function Course({ view, count }: { view: PlanView; count: number }) {
  const figures = [view.figureBefore, ...view.steps.map((step) => step.figure)];
  const low = Math.min(...figures);
  const high = Math.max(...figures);
  const x = (index: number) => 80 + (index * (WIDTH - 90)) / Math.max(figures.length - 1, 1);
  const y = (figure: number) => 54 - (44 * (figure - low)) / (high - low || 1);
  const points = figures.map((figure, index) => (index ? `H${x(index)} V${y(figure)}` : `M${x(0)} ${y(figure)}`));
  return (
    <svg viewBox={`0 0 ${WIDTH} 64`} role="img" aria-label="The figure after each step">
      <path d={points.join(" ")} class="course" />
      <text x={0} y={y(high) + 4}>
        {high}
      </text>
      {low !== high && (
        <text x={0} y={y(low) + 4}>
          {low}
        </text>
      )}
      <circle cx={x(count)} cy={y(figures[count])} r={5} class="course-now" />
    </svg>
  );
}

function Nodes({ view, count, resource }: { view: PlanView; count: number; resource: number }) {
  const before = stateAfter(view, 0);
  const after = stateAfter(view, count);
  const done = view.steps.slice(0, count);
  return (
    <svg viewBox={`0 0 ${WIDTH} ${TOP + view.nodes.length * PITCH}`} role="img" aria-label="Nodes before and after">
      <text x={NAME} y={14}>
        before
      </text>
      <text x={RIGHT} y={14}>
        after step {count}
      </text>
      {view.nodes.map((node, row) => {
        const was = shareOf(node, before[row], resource);
        const is = shareOf(node, after[row], resource);
        const kind = Math.abs(is - was) < 1e-9 ? "used" : is > was ? "fuller" : "emptier";
        const mark = RIGHT + BAR * Math.min(was, 1);
        const y = TOP + row * PITCH;
        return (
          <g key={node.name}>
            <Bar x={NAME} y={y} share={was} kind="used" />
            <Bar x={RIGHT} y={y} share={is} kind={kind} />
            <line x1={mark} x2={mark} y1={y} y2={y + ROW} class="was" />
            <Label x={NAME - 8} y={y} anchor="end" node={node} state={before[row]} share={was} />
            <Label x={RIGHT + BAR + 8} y={y} anchor="start" node={node} state={after[row]} share={is} />
          </g>
        );
      })}
      {done.map((step, index) => step.moves.map((move) => <Line key={move.pod} view={view} move={move} isNow={index === count - 1} />))}
    </svg>
  );
}

function Bar({ x, y, share, kind }: { x: number; y: number; share: number; kind: string }) {
  return (
    <>
      <rect x={x} y={y} width={BAR} height={ROW} class="has" />
      <rect x={x} y={y} width={BAR * Math.min(share, 1)} height={ROW} class={kind} />
    </>
  );
}

interface LabelProps {
  x: number;
  y: number;
  anchor: "start" | "end";
  node: PlannedNode;
  state: NodeState;
  share: number;
}

function Label({ x, y, anchor, node, state, share }: LabelProps) {
  const name = node.name.length > NAME_LENGTH ? `${node.name.slice(0, NAME_LENGTH - 1)}…` : node.name;
  return (
    <text x={x} y={y + ROW - 4} text-anchor={anchor}>
      {name} {Math.round(100 * share)} %{state.isClosed ? ", closed" : ""}
      <title>{`${node.name}: ${state.pods} pods`}</title>
    </text>
  );
}

function Line({ view, move, isNow }: { view: PlanView; move: PlanMove; isNow: boolean }) {
  if (move.source < 0) return null;
  const from = TOP + move.source * PITCH + ROW / 2;
  const to = TOP + move.target * PITCH + ROW / 2;
  const left = NAME + BAR;
  const middle = (left + RIGHT) / 2;
  return (
    <path d={`M${left} ${from} C${middle} ${from} ${middle} ${to} ${RIGHT} ${to}`} class={isNow ? "move now" : "move"}>
      <title>{`${move.pod}: ${view.nodes[move.source].name} to ${view.nodes[move.target].name}`}</title>
    </path>
  );
}
