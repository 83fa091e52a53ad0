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
const GROUP_GAP = 10;
const CELL_MAX = 132;
const CELL_MIN = 7;

interface Block {
  columns: number;
  width: number;
  height: number;
}

// A block is about as wide as high, and wide enough for a heading.
function blockOf(count: number, cell: number, width: number): Block {
  const square = Math.ceil(Math.sqrt(count * 1.6));
  const headed = Math.ceil(96 / cell);
  const columns = Math.max(1, Math.min(Math.floor(width / cell), Math.max(square, headed)));
  const lines = Math.ceil(count / columns);
  const used = Math.min(columns, Math.max(count, headed));
  return { columns, width: used * cell, height: HEADING + lines * cell };
}

interface Spot extends Block {
  x: number;
  y: number;
}

function placeBlocks(counts: number[], cell: number, width: number): { spots: Spot[]; height: number } {
  const spots: Spot[] = [];
  let x = 0;
  let y = 0;
  let lineHeight = 0;
  for (const count of counts) {
    const block = counts.length === 1 ? wholeWidth(count, cell, width) : blockOf(count, cell, width);
    if (x > 0 && x + block.width > width) {
      x = 0;
      y += lineHeight + GROUP_GAP;
      lineHeight = 0;
    }
    spots.push({ ...block, x, y });
    x += block.width + GROUP_GAP;
    lineHeight = Math.max(lineHeight, block.height);
  }
  return { spots, height: y + lineHeight };
}

function wholeWidth(count: number, cell: number, width: number): Block {
  const columns = Math.max(1, Math.floor(width / cell));
  return { columns, width, height: HEADING + Math.ceil(count / columns) * cell };
}

// The largest cell with which everything fits; if none does, the smallest, and the map scrolls.
function largestCell(counts: number[], width: number, height: number): number {
  let fits = CELL_MIN;
  let low = CELL_MIN;
  let high = Math.min(CELL_MAX, Math.floor(width));
  while (low <= high) {
    const cell = (low + high) >> 1;
    if (placeBlocks(counts, cell, width).height <= height) {
      fits = cell;
      low = cell + 1;
    } else {
      high = cell - 1;
    }
  }
  return fits;
}

export function layOut(groups: Group[], rowCount: number, width: number, height: number): Placed {
  const counts = groups.map((group) => group.rows.length);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const cell = largestCell(counts, width, height);
  const { spots, height: used } = placeBlocks(counts, cell, width);
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
