// The picture of the nodes on a canvas. The more space a node has, the more it shows:
// a colour, then its pods as dots, then its name and share.

import type { Nodes } from "../model/cluster";
import { plural } from "../widgets/format";
import type { Group, Placed } from "./layout";
import { gapOf, HEADING } from "./layout";
import type { Palette } from "./palette";

export interface Ink {
  text: string;
  faint: string;
  line: string;
  missing: string; // a node without the resource
  alert: string;
  focus: string;
  surface: string;
}

export interface Picture {
  placed: Placed;
  groups: Group[];
  nodes: Nodes;
  resource: number;
  resources: string[]; // their names
  palette: Palette;
  ink: Ink;
  top: number; // what is scrolled away
  height: number;
  focused: number; // position, -1 without
  opened: number; // node row, -1 without
  owners: Map<number, Owned[]> | null; // by node row, where there is space for names
  verdicts: Uint8Array | null; // by node row, see `Verdict`; of the opened pod
}

// How many pods of one owner are on a node.
export interface Owned {
  name: string;
  count: number;
}

// Of the opened pod on each node; drawn as a mark, so that it does not depend on colour.
export const enum Verdict {
  None,
  Feasible,
  Rejected,
  Chosen,
  Near, // rejected, but little is missing
}

const DOTS_FROM = 22;
const NAMES_FROM = 62;
export const BARS_FROM = 104;
const LINE = 15;
const BARS_MAX = 3;
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

export function draw(context: CanvasRenderingContext2D, picture: Picture): void {
  const { placed, top, height } = picture;
  context.clearRect(0, 0, placed.width, height);
  context.save();
  context.translate(0, -top);
  drawHeadings(context, picture);
  const gap = gapOf(placed.cell);
  const visible = visiblePositions(placed, top, height);
  drawFills(context, picture, visible, placed.cell - gap);
  for (const position of visible) drawDetails(context, picture, position, placed.cell - gap);
  drawRing(context, picture, placed.positionOf[picture.opened] ?? -1, picture.ink.text, placed.cell - gap);
  drawRing(context, picture, picture.focused, picture.ink.focus, placed.cell - gap);
  context.restore();
}

function visiblePositions(placed: Placed, top: number, height: number): number[] {
  const visible: number[] = [];
  for (let position = 0; position < placed.order.length; position++) {
    const y = placed.y[position];
    if (y + placed.cell >= top && y <= top + height) visible.push(position);
  }
  return visible;
}

function drawHeadings(context: CanvasRenderingContext2D, { placed, groups, ink }: Picture): void {
  context.textBaseline = "middle";
  for (const { x, y, width, group } of placed.headings) {
    const count = String(groups[group].rows.length);
    context.font = `600 11.5px ${FONT}`;
    context.fillStyle = ink.text;
    const label = fitted(context, groups[group].label, width - 30);
    context.fillText(label, x, y + HEADING / 2 - 1);
    const after = x + context.measureText(label).width + 6;
    context.font = `11px ${FONT}`;
    context.fillStyle = ink.faint;
    context.fillText(count, after, y + HEADING / 2 - 1);
  }
}

// All cells of one colour after each other: changing the fill costs more than a rectangle.
function drawFills(context: CanvasRenderingContext2D, picture: Picture, visible: number[], side: number): void {
  const { placed, nodes, resource, palette, ink } = picture;
  const byStep: number[][] = [];
  const missing: number[] = [];
  for (const position of visible) {
    const share = nodes.share(placed.order[position], resource);
    if (Number.isNaN(share)) missing.push(position);
    else (byStep[stepOf(share)] ??= []).push(position);
  }
  const radius = side >= 40 ? 5 : side >= 12 ? 2 : 0;
  const paint = (positions: number[]) => {
    context.beginPath();
    for (const position of positions) {
      if (radius) context.roundRect(placed.x[position], placed.y[position], side, side, radius);
      else context.rect(placed.x[position], placed.y[position], side, side);
    }
  };
  byStep.forEach((positions, step) => {
    paint(positions);
    context.fillStyle = palette.fill[step];
    context.fill();
  });
  paint(missing);
  context.strokeStyle = ink.missing;
  context.lineWidth = 1;
  context.stroke();
}

export function stepOf(share: number): number {
  return Math.max(0, Math.min(100, Math.round(share * 100)));
}

function drawDetails(context: CanvasRenderingContext2D, picture: Picture, position: number, side: number): void {
  const { placed, nodes, resource, palette, ink } = picture;
  const row = placed.order[position];
  const x = placed.x[position];
  const y = placed.y[position];
  const share = nodes.share(row, resource);
  const isFaded = picture.verdicts?.[row] === Verdict.Rejected;
  if (isFaded) fade(context, x, y, side, ink.surface);
  const text = Number.isNaN(share) || isFaded ? ink.text : palette.ink[stepOf(share)];
  if (side >= NAMES_FROM) drawName(context, nodes.name[row], share, x, y, side, text);
  const bars = side >= BARS_FROM ? drawBars(context, picture, row, x, y, side, text) : 0;
  const owners = bars > 0 ? picture.owners?.get(row) : undefined;
  if (owners) drawOwners(context, owners, x, y, side, side - bars, text);
  else if (side >= DOTS_FROM) drawDots(context, nodes.podCount[row], x, y, side, side - bars, text);
  if (!nodes.ready[row]) drawCross(context, x, y, side, ink.alert);
  else if (nodes.unschedulable[row]) drawCorner(context, x, y, side, ink.alert);
  const verdict = picture.verdicts?.[row];
  if (verdict === Verdict.Chosen) drawFrame(context, x, y, side, ink.focus, false);
  if (verdict === Verdict.Near) drawFrame(context, x, y, side, ink.focus, true);
}

function drawName(
  context: CanvasRenderingContext2D,
  name: string,
  share: number,
  x: number,
  y: number,
  side: number,
  text: string,
): void {
  context.fillStyle = text;
  context.font = `600 11px ${FONT}`;
  context.fillText(fittedEnd(context, name, side - 14), x + 7, y + 13);
  context.font = `11px ${FONT}`;
  context.fillText(Number.isNaN(share) ? "–" : `${Math.round(share * 100)} %`, x + 7, y + 28);
}

// What runs on a node: a line for each owner, with a dot for each of its pods.
function drawOwners(
  context: CanvasRenderingContext2D,
  owners: Owned[],
  x: number,
  y: number,
  side: number,
  height: number,
  text: string,
): void {
  const top = 40;
  const lines = Math.max(1, Math.floor((height - top - 6) / LINE));
  const shown = owners.length > lines ? owners.slice(0, lines - 1) : owners;
  const half = (side - 14) / 2;
  context.fillStyle = text;
  context.font = `11px ${FONT}`;
  shown.forEach(({ name, count }, index) => {
    const middle = y + top + index * LINE + LINE / 2;
    const dots = Math.min(count, Math.floor(half / 7));
    for (let dot = 1; dot <= dots; dot++) context.fillRect(x + side - 5 - dot * 7, middle - 2.5, 5, 5);
    context.fillText(fitted(context, name, side - 18 - dots * 7), x + 7, middle);
  });
  if (shown.length < owners.length) {
    const rest = owners.slice(shown.length).reduce((sum, { count }) => sum + count, 0);
    context.fillText(`+ ${plural(rest, "pod")}`, x + 7, y + top + shown.length * LINE + LINE / 2);
  }
}

// The other resources of a node, as thin bars at its lower edge. Returns their height.
function drawBars(
  context: CanvasRenderingContext2D,
  { nodes, resource, resources }: Picture,
  row: number,
  x: number,
  y: number,
  side: number,
  text: string,
): number {
  const others = resources
    .map((name, index) => ({ name, share: index === resource ? NaN : nodes.share(row, index) }))
    // Pods are drawn one by one.
    .filter(({ name, share }) => !Number.isNaN(share) && name !== "pods")
    .slice(0, BARS_MAX);
  context.font = `10px ${FONT}`;
  others.forEach(({ name, share }, index) => {
    const top = y + side - 6 - (others.length - index) * 13;
    context.fillStyle = text;
    context.fillText(fitted(context, name, 48), x + 7, top + 6);
    const width = side - 14 - 54;
    context.globalAlpha = 0.25;
    context.fillRect(x + 61, top + 4, width, 5);
    context.globalAlpha = 0.85;
    context.fillRect(x + 61, top + 4, width * Math.min(1, share), 5);
    context.globalAlpha = 1;
  });
  return others.length * 13 + 4;
}

function drawDots(context: CanvasRenderingContext2D, count: number, x: number, y: number, side: number, height: number, text: string): void {
  const top = side >= NAMES_FROM ? 40 : 4;
  const dot = side >= NAMES_FROM ? 5 : 3;
  const step = dot + 2;
  const inset = side >= NAMES_FROM ? 7 : 4;
  const columns = Math.max(1, Math.floor((side - 2 * inset + 2) / step));
  const lines = Math.max(0, Math.floor((height - top - 4) / step));
  const shown = Math.min(count, columns * lines);
  context.globalAlpha = 0.62;
  context.fillStyle = text;
  context.beginPath();
  for (let index = 0; index < shown; index++) {
    context.rect(x + inset + (index % columns) * step, y + top + Math.floor(index / columns) * step, dot, dot);
  }
  context.fill();
  context.globalAlpha = 1;
}

// A lost node is crossed out, a cordoned one has a folded corner: shapes, not colours alone.
function drawCross(context: CanvasRenderingContext2D, x: number, y: number, side: number, color: string): void {
  if (side >= NAMES_FROM) {
    // Beside the name, which stays readable.
    x += side - 24;
    y += 18;
    side = 20;
  }
  const inset = side >= 20 ? 4 : 1;
  context.strokeStyle = color;
  context.lineWidth = side >= 20 ? 2.5 : 1.5;
  context.beginPath();
  context.moveTo(x + inset, y + inset);
  context.lineTo(x + side - inset, y + side - inset);
  context.moveTo(x + side - inset, y + inset);
  context.lineTo(x + inset, y + side - inset);
  context.stroke();
}

function drawCorner(context: CanvasRenderingContext2D, x: number, y: number, side: number, color: string): void {
  const size = Math.max(4, Math.min(16, side * 0.4));
  context.fillStyle = color;
  context.beginPath();
  context.moveTo(x + side - size, y);
  context.lineTo(x + side, y);
  context.lineTo(x + side, y + size);
  context.closePath();
  context.fill();
}

function fade(context: CanvasRenderingContext2D, x: number, y: number, side: number, color: string): void {
  context.fillStyle = color;
  context.globalAlpha = 0.7;
  context.fillRect(x - 0.5, y - 0.5, side + 1, side + 1);
  context.globalAlpha = 1;
}

// The chosen node has a whole frame, one that almost fits a dashed one.
function drawFrame(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  side: number,
  color: string,
  isDashed: boolean,
): void {
  context.strokeStyle = color;
  context.lineWidth = side >= 20 ? 3 : 2;
  if (isDashed) context.setLineDash(side >= 20 ? [6, 4] : [3, 2]);
  context.strokeRect(x + 1, y + 1, side - 2, side - 2);
  context.setLineDash([]);
}

function drawRing(context: CanvasRenderingContext2D, { placed, ink }: Picture, position: number, color: string, side: number): void {
  if (position < 0 || position >= placed.order.length) return;
  const x = placed.x[position];
  const y = placed.y[position];
  context.lineWidth = 4;
  context.strokeStyle = ink.surface;
  context.strokeRect(x - 1.5, y - 1.5, side + 3, side + 3);
  context.lineWidth = 2;
  context.strokeStyle = color;
  context.strokeRect(x - 1.5, y - 1.5, side + 3, side + 3);
}

function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let end = Math.min(text.length, 200);
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end)}…`;
}

// The end of a node's name tells it from the others.
function fittedEnd(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let kept = Math.min(text.length, 60);
  while (kept > 1 && context.measureText(`…${text.slice(-kept)}`).width > width) kept -= 1;
  return `…${text.slice(-kept)}`;
}
