// Where each node is drawn: groups as blocks of equal squares, as large as the space allows.
//
// Pure: sizes in, positions out. Positions are columns, so 5,000 nodes are laid out in about a millisecond.

export interface Group {
  label: string;
  rows: Int32Array; // node rows, in the order in which they are drawn
}

export interface Placed {
  cell: number; // side of a square, gap included, in CSS pixels
  x: Float32Array; // by position in `order`
  y: Float32Array;
  order: Int32Array; // node rows, group after group
  positionOf: Int32Array; // node row → position, -1 where the row is not drawn
  headings: { x: number; y: number; width: number; group: number }[];
  starts: number[]; // the first position of each group
  width: number;
  height: number;
}

export const HEADING = 20;
const GROUP_GAP = 12;
const CELL_MAX = 190;
const CELL_MIN = 7;
const ACROSS_MAX = 8;

interface Spot {
  x: number;
  y: number;
  columns: number; // cells in a line
  width: number;
}

interface Blocks {
  spots: Spot[];
  height: number;
}

// Blocks in equally wide stacks, each block onto the stack that is lowest.
function placeBlocks(counts: number[], cell: number, width: number, across: number): Blocks {
  const stackWidth = (width - GROUP_GAP * (across - 1)) / across;
  const columns = Math.max(1, Math.floor(stackWidth / cell));
  const tops = new Array<number>(across).fill(0);
  const spots = counts.map((count) => {
    const stack = tops.indexOf(Math.min(...tops));
    const spot = { x: stack * (stackWidth + GROUP_GAP), y: tops[stack], columns, width: stackWidth };
    tops[stack] += HEADING + Math.ceil(count / columns) * cell + GROUP_GAP;
    return spot;
  });
  return { spots, height: Math.max(...tops) - GROUP_GAP };
}

// The largest cell with which everything fits, 0 if none does.
function largestCell(counts: number[], width: number, height: number, across: number): number {
  let fits = 0;
  let low = CELL_MIN;
  let high = Math.min(CELL_MAX, Math.floor(width / across));
  while (low <= high) {
    const cell = (low + high) >> 1;
    if (placeBlocks(counts, cell, width, across).height <= height) {
      fits = cell;
      low = cell + 1;
    } else {
      high = cell - 1;
    }
  }
  return fits;
}

// The number of stacks that lets cells be largest; if nothing fits, small cells, and the map scrolls.
function arrange(counts: number[], width: number, height: number): { cell: number; across: number } {
  let best = { cell: 0, across: 1 };
  for (let across = 1; across <= Math.min(counts.length, ACROSS_MAX); across++) {
    if (across > 1 && width / across < 90) break;
    const cell = largestCell(counts, width, height, across);
    if (cell > 0 && cell >= best.cell) best = { cell, across };
  }
  if (best.cell > 0) return best;
  const typical = Math.max(...counts) <= 4 ? 24 : CELL_MIN;
  return { cell: typical, across: Math.max(1, Math.min(counts.length, ACROSS_MAX, Math.floor(width / 140))) };
}

export function layOut(groups: Group[], rowCount: number, width: number, height: number): Placed {
  const counts = groups.map((group) => group.rows.length);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const { cell, across } = arrange(counts, width, height);
  const { spots, height: used } = placeBlocks(counts, cell, width, across);
  const placed: Placed = {
    cell,
    x: new Float32Array(total),
    y: new Float32Array(total),
    order: new Int32Array(total),
    positionOf: new Int32Array(rowCount).fill(-1),
    headings: [],
    starts: [],
    width,
    height: Math.max(used, 1),
  };
  let position = 0;
  groups.forEach((group, index) => {
    const spot = spots[index];
    placed.headings.push({ x: spot.x, y: spot.y, width: spot.width, group: index });
    placed.starts.push(position);
    group.rows.forEach((row, at) => {
      placed.x[position] = spot.x + (at % spot.columns) * cell;
      placed.y[position] = spot.y + HEADING + Math.floor(at / spot.columns) * cell;
      placed.order[position] = row;
      placed.positionOf[row] = position;
      position += 1;
    });
  });
  return placed;
}

// Between two cells.
export function gapOf(cell: number): number {
  return cell >= 40 ? 4 : cell >= 14 ? 2 : 1;
}

export function positionAt(placed: Placed, x: number, y: number): number {
  for (let position = 0; position < placed.order.length; position++) {
    const dx = x - placed.x[position];
    const dy = y - placed.y[position];
    if (dx >= 0 && dy >= 0 && dx < placed.cell && dy < placed.cell) return position;
  }
  return -1;
}

// The nearest cell above or below, by geometry: groups differ in their number of columns.
export function neighbour(placed: Placed, from: number, down: boolean): number {
  let best = -1;
  let bestDistance = Infinity;
  for (let position = 0; position < placed.order.length; position++) {
    const dy = (placed.y[position] - placed.y[from]) * (down ? 1 : -1);
    if (dy <= 1) continue;
    const distance = dy * 4 + Math.abs(placed.x[position] - placed.x[from]);
    if (distance < bestDistance) {
      bestDistance = distance;
      best = position;
    }
  }
  return best < 0 ? from : best;
}
