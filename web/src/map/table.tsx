// The nodes as a table: all resources, taints and age, in any order, to take along as CSV. Only the visible
// rows are in the document.

import { useMemo } from "preact/hooks";

import type { Cluster } from "../model/cluster";
import type { Shown } from "../model/live";
import { choice, open, route } from "../model/route";
import { age, amount, percent } from "../widgets/format";
import { VirtualTable } from "../widgets/virtual_table";
import type { Column } from "../widgets/virtual_table";
import { conditionOf } from "./describe";

interface Props extends Shown {
  found: Set<string> | null;
}

interface NodeColumn extends Column {
  compare: (a: number, b: number) => number;
  cell: (row: number) => preact.ComponentChildren;
  text: (row: number) => string; // in a file
}

const order = choice<string>("sort", () => "name");
const collator = new Intl.Collator("en", { numeric: true });

export function NodeTable({ cluster, version, found }: Props) {
  const columns = useMemo(() => columnsOf(cluster), [cluster, version]);
  const isDown = order.current.value.startsWith("-");
  const key = order.current.value.replace(/^-/, "");
  const by = columns.find((column) => column.key === key) ?? columns[0];
  const rows = useMemo(() => {
    const all = [...cluster.nodes.rows.of.values()];
    const shown = found ? all.filter((row) => found.has(cluster.nodes.name[row])) : all;
    const sign = isDown ? -1 : 1;
    return shown.sort((a, b) => sign * by.compare(a, b) || collator.compare(cluster.nodes.name[a], cluster.nodes.name[b]));
  }, [cluster, version, found, by.key, isDown]);
  const opened = route.value.view === "node" ? route.value.name : "";
  return (
    <div class="table-wrap node-table">
      <VirtualTable
        label="Nodes"
        columns={columns}
        count={rows.length}
        rowHeight={28}
        sorted={{ key: by.key, isDown }}
        onSort={(column) => order.set(column === by.key && !isDown ? `-${column}` : column)}
        current={opened ? rows.findIndex((row) => cluster.nodes.name[row] === opened) : -1}
        onActivate={(index) => open({ view: "node", name: cluster.nodes.name[rows[index]] })}
        cell={(index, column) => columns[column].cell(rows[index])}
      />
      <div class="table-foot">
        <button onClick={() => save(columns, rows)}>Save as CSV</button>
      </div>
    </div>
  );
}

function columnsOf(cluster: Cluster): NodeColumn[] {
  const { nodes, words } = cluster;
  const texts = (key: string, title: string, width: number, text: (row: number) => string): NodeColumn => ({
    key,
    title,
    width,
    text,
    cell: text,
    compare: (a, b) => collator.compare(text(a), text(b)),
  });
  const groups = words.groupings
    .map((key, index) => texts(`label ${key}`, key.slice(key.indexOf("/") + 1), 78, (row) => nodes.groups[row][index] ?? ""))
    .filter((_, index) => new Set(nodes.groups.map((values) => values[index])).size > 1)
    .slice(0, 2);
  const resources = words.resources
    .map((resource, index) => ({ resource, index }))
    .filter(({ index }) => nodes.allocatable.some((amounts, row) => nodes.alive[row] && amounts[index]))
    .flatMap(({ resource, index }) => resourceColumn(cluster, resource.name, resource.unit, index));
  return [
    { ...texts("name", "Name", 110, (row) => nodes.name[row]), isHead: true },
    ...groups,
    {
      ...texts("condition", "Condition", 84, (row) => conditionOf(cluster, row)),
      cell: (row) => (
        <span class={`state ${conditionOf(cluster, row).replace(" ", "-")}`}>{conditionOf(cluster, row)}</span>
      ),
    },
    ...resources,
    texts("taints", "Taints", 120, (row) => nodes.taints[row].join(", ")),
    {
      key: "age",
      title: "Age",
      width: 44,
      isRight: true,
      compare: (a, b) => nodes.created[b] - nodes.created[a],
      cell: (row) => (nodes.created[row] ? age((cluster.state.clock.time - nodes.created[row]) / 1000) : ""),
      text: (row) => (nodes.created[row] ? new Date(nodes.created[row]).toISOString() : ""),
    },
  ];
}

function resourceColumn(cluster: Cluster, name: string, unit: string, index: number): NodeColumn[] {
  const { nodes } = cluster;
  const requested = (row: number) => nodes.requested[row][index] ?? 0;
  const allocatable = (row: number) => nodes.allocatable[row][index] ?? 0;
  return [
    {
      key: name,
      title: name.slice(name.indexOf("/") + 1),
      width: unit === "bytes" ? 104 : 74,
      isRight: true,
      compare: (a, b) => (nodes.share(a, index) || 0) - (nodes.share(b, index) || 0),
      cell: (row) =>
        allocatable(row) === 0 ? (
          <span class="faint">–</span>
        ) : (
          <span class="use-cell" title={percent(nodes.share(row, index))}>
            <span>
              {amount(requested(row), unit)} <span class="faint">of {amount(allocatable(row), unit)}</span>
            </span>
            <span class="track" aria-hidden="true">
              <i class="use" style={{ width: `${Math.min(100, nodes.share(row, index) * 100)}%` }} />
            </span>
          </span>
        ),
      text: (row) => `${requested(row)}/${allocatable(row)}`,
    },
  ];
}

function save(columns: NodeColumn[], rows: number[]): void {
  const lines = [columns.map((column) => column.key), ...rows.map((row) => columns.map((column) => column.text(row)))];
  const text = lines.map((cells) => cells.map(quoted).join(",")).join("\r\n");
  const address = URL.createObjectURL(new Blob([`${text}\r\n`], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = "nodes.csv";
  link.click();
  URL.revokeObjectURL(address);
}

// A cell that a spreadsheet would read as a formula is marked as text.
function quoted(cell: string): string {
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
