// Groups of pods as one thing: how many members there are, how many are needed, where they are and why not.

import { useEffect } from "preact/hooks";

import { Verdict } from "../map/draw";
import type { Shown } from "../model/live";
import { open } from "../model/route";
import { verdicts } from "../model/verdicts";
import { plural } from "../widgets/format";
import { VirtualList } from "../widgets/virtual_list";
import { Fact, NodeLink } from "./explanation";
import { useDocument } from "./loading";
import { openPod, PodLine } from "./queue";
import { OpenedHead } from "./side";

interface GroupRow {
  namespace: string;
  name: string;
  members: number;
  placed: number;
  minCount: number | null;
  exists: boolean;
}

interface GroupDocument {
  row: GroupRow;
  topologyKey: string;
  condition: string;
  pods: unknown[][]; // rows, the key first
}

const EVERY_MS = 2000; // of the cluster's time

export function Groups({ cluster }: Shown) {
  const again = Math.floor(cluster.state.clock.time / EVERY_MS);
  const { value, error } = useDocument<{ groups: GroupRow[]; count: number }>("groups", again);
  const groups = value?.groups ?? [];
  return (
    <>
      {error && <p class="error">{error}</p>}
      {value && value.count > groups.length && <p class="faint legend-note">The first of {plural(value.count, "group")}</p>}
      <VirtualList
        label="Groups of pods"
        count={groups.length}
        rowHeight={42}
        empty={value ? "No pod is a member of a group" : "Reading …"}
        onActivate={(index) => open({ view: "group", namespace: groups[index].namespace, name: groups[index].name })}
        row={(index) => <GroupLine group={groups[index]} />}
      />
    </>
  );
}

function stateOf({ placed, minCount, members, exists }: GroupRow): [text: string, kind: string] {
  if (!exists) return ["no object", "bad"];
  if (placed === members) return ["placed", "good"];
  return placed >= (minCount ?? 1) ? ["partly placed", "warn"] : ["waits", "bad"];
}

function needs({ minCount }: GroupRow): string {
  return minCount === null ? "any number is enough" : `${minCount} are needed together`;
}

function GroupLine({ group }: { group: GroupRow }) {
  const [text, kind] = stateOf(group);
  return (
    <>
      <span class="grow">
        <span class="clip line">
          <span class="what">{group.name}</span> <span class="faint">{group.namespace}</span>
        </span>
        <span class="clip line faint">
          {group.placed} of {plural(group.members, "member")} placed, {needs(group)}
        </span>
      </span>
      <span class={`badge ${kind}`}>{text}</span>
    </>
  );
}

export function GroupView({ cluster, version, namespace, name }: Shown & { namespace: string; name: string }) {
  const again = Math.floor(cluster.state.clock.time / EVERY_MS);
  const path = `groups/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const { value, error } = useDocument<GroupDocument>(path, again);
  const rows = (value?.pods ?? []).flatMap(([key]) => cluster.pods.rows.of.get(key as string) ?? []);
  const nodeOf = (row: number) => cluster.nodes.rows.of.get(cluster.pods.node[row]);
  const placed = new Map<string, number>();
  for (const row of rows) {
    const node = nodeOf(row);
    if (node !== undefined) placed.set(cluster.nodes.name[node], (placed.get(cluster.nodes.name[node]) ?? 0) + 1);
  }
  const reasons = new Set(rows.map((row) => cluster.words.reasons[cluster.pods.reason[row]]).filter(Boolean));
  useEffect(() => {
    verdicts.value = placed.size > 0 ? new Map([...placed.keys()].map((node) => [node, Verdict.Chosen])) : null;
    return () => {
      verdicts.value = null;
    };
  }, [[...placed.keys()].join()]);
  return (
    <>
      <OpenedHead
        kind="Group"
        title={name}
        note={namespace}
        badge={value && <span class={`badge ${stateOf(value.row)[1]}`}>{stateOf(value.row)[0]}</span>}
      />
      <div class="detail" tabIndex={0} role="region" aria-label={`Group ${name}`}>
        {error && <p class="error">{error}</p>}
        {value && (
          <>
            <p class="lead">
              {value.row.placed} of {plural(value.row.members, "member")} placed, {needs(value.row)}
            </p>
            {!value.row.exists && <p class="mistake">There is no PodGroup of this name, so its members wait.</p>}
            {value.condition && <p class="message">{value.condition}</p>}
            <dl class="facts-list">
              {value.topologyKey && <Fact name="Within one">{value.topologyKey}</Fact>}
              {placed.size > 0 && (
                <Fact name="On">
                  {[...placed].map(([node, pods], index) => (
                    <span key={node}>
                      {index > 0 && ", "}
                      <NodeLink name={node} />
                      {pods > 1 && ` ×${pods}`}
                    </span>
                  ))}
                </Fact>
              )}
            </dl>
            {reasons.size > 0 && (
              <>
                <h3>Why members wait</h3>
                {[...reasons].slice(0, 5).map((reason) => (
                  <p class="message" key={reason}>
                    {reason}
                  </p>
                ))}
              </>
            )}
            <h3>{plural(rows.length, "member")}</h3>
            <div class="fixed-list">
              <VirtualList
                label={`Members of ${name}`}
                count={rows.length}
                rowHeight={26}
                onActivate={(index) => openPod(cluster.pods.key[rows[index]])}
                row={(index) => <PodLine cluster={cluster} version={version} row={rows[index]} />}
              />
            </div>
          </>
        )}
      </div>
    </>
  );
}
