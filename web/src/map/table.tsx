// The nodes as a table: the same facts as the map, in text. Only the visible rows are in the document.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";

import type { Shown } from "../model/live";
import { open, route } from "../model/route";
import { grouping } from "../model/settings";
import { plural } from "../widgets/format";
import { VirtualList } from "../widgets/virtual_list";
import { conditionOf, useOf } from "./describe";
import { sortedRows } from "./grouping";

interface Props extends Shown {
  resource: number;
}

type Order = "name" | "use";

export function NodeTable({ cluster, version, resource }: Props) {
  const order = useSignal<Order>("name");
  const rows = useMemo(() => {
    const byName = sortedRows(cluster);
    if (order.value === "name") return byName;
    const use = (row: number) => cluster.nodes.share(row, resource) || 0;
    return byName.sort((a, b) => use(b) - use(a));
  }, [cluster, order.value === "use" ? version : cluster.layoutVersion, order.value, resource]);
  const at = cluster.words.groupings.indexOf(grouping.value);
  const opened = route.value.view === "node" ? route.value.name : "";
  return (
    <div class="table-wrap node-table">
      <div class="find">
        <span class="joined" role="group" aria-label="Order">
          <button aria-pressed={order.value === "name"} onClick={() => (order.value = "name")}>
            By name
          </button>
          <button aria-pressed={order.value === "use"} onClick={() => (order.value = "use")}>
            Fullest first
          </button>
        </span>
      </div>
      <VirtualList
        label={`Nodes: name, group, condition, pods, ${cluster.words.resources[resource]?.name ?? ""}`}
        count={rows.length}
        rowHeight={28}
        current={opened ? rows.findIndex((row) => cluster.nodes.name[row] === opened) : -1}
        onActivate={(index) => open({ view: "node", name: cluster.nodes.name[rows[index]] })}
        row={(index) => {
          const row = rows[index];
          const share = cluster.nodes.share(row, resource);
          return (
            <>
              <span class="grow clip what">{cluster.nodes.name[row]}</span>
              <span class="group clip faint">{at < 0 ? "" : cluster.nodes.groups[row][at]}</span>
              <span class="condition">
                <span class={`state ${conditionOf(cluster, row).replace(" ", "-")}`}>{conditionOf(cluster, row)}</span>
              </span>
              <span class="pods right">{plural(cluster.nodes.podCount[row], "pod")}</span>
              <span class="track" aria-hidden="true">
                <i class="use" style={{ width: `${Math.min(100, (share || 0) * 100)}%` }} />
              </span>
              <span class="use-text right">{useOf(cluster, row, resource)}</span>
            </>
          );
        }}
      />
    </div>
  );
}
