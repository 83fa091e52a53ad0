// What can be done to one pod of a demo: release it, delete it, scale what made it.

import { useSignal } from "@preact/signals";

import type { Shown } from "../model/live";
import { act } from "../model/server";
import { plural } from "../widgets/format";
import { run } from "./demo_bar";
import { Field, FormDialog } from "./dialog";
import { askBefore } from "./question";

const SCALED = ["Deployment", "StatefulSet", "ReplicaSet"];

interface Props extends Shown {
  row: number;
  namespace: string;
  name: string;
}

export function PodActions({ cluster, row, namespace, name }: Props) {
  const scaling = useSignal(false);
  const { pods, state, words } = cluster;
  const can = (action: string) => state.actions.includes(action);
  if (!can("delete")) return null;
  const owner = words.owners[pods.owner[row]] ?? "";
  const kind = owner.slice(0, owner.indexOf("/"));
  const ownerName = owner.slice(owner.indexOf("/") + 1);
  const isGated = state.places[pods.place[row]] === "gated";
  return (
    <p class="actions">
      {isGated && can("release") && (
        <button class="primary" onClick={() => run("release", { namespace, name })}>
          Release
        </button>
      )}
      {can("scale") && SCALED.includes(kind) && (
        <button onClick={() => (scaling.value = true)}>Scale {ownerName}…</button>
      )}
      <button
        class="danger"
        onClick={() =>
          askBefore({
            title: `Delete the pod ${name}?`,
            text: owner ? `${kind} ${ownerName} makes another one in its place.` : "Nothing makes it again.",
            confirm: "Delete",
            run: () => run("delete", { kind: "Pod", namespace, name }),
          })
        }
      >
        Delete…
      </button>
      {scaling.value && (
        <ScaleDialog
          kind={kind}
          namespace={namespace}
          name={ownerName}
          present={countOf(cluster, pods.owner[row], namespace)}
          onClose={() => (scaling.value = false)}
        />
      )}
    </p>
  );
}

function countOf(cluster: Shown["cluster"], owner: number, namespace: string): number {
  const { pods } = cluster;
  let found = 0;
  for (let row = 0; row < pods.rows.length; row++) {
    if (pods.owner[row] === owner && pods.key[row].startsWith(`${namespace}/`) && !pods.terminating[row]) found += 1;
  }
  return found;
}

interface ScaleProps {
  kind: string;
  namespace: string;
  name: string;
  present: number;
  onClose: () => void;
}

function ScaleDialog({ kind, namespace, name, present, onClose }: ScaleProps) {
  const replicas = useSignal(String(present));
  const fewer = present - Number(replicas.value);
  return (
    <FormDialog
      title={`Scale ${kind} ${name}`}
      submit={fewer > 0 ? `Delete ${plural(fewer, "pod")}` : "Scale"}
      run={() => act("scale", { kind, namespace, name, replicas: Number(replicas.value) })}
      onClose={onClose}
    >
      <p class="faint">It has {plural(present, "pod")} now.</p>
      <Field label="Pods">
        <input
          type="number"
          min={0}
          max={10000}
          required
          value={replicas.value}
          onInput={(event) => (replicas.value = event.currentTarget.value)}
        />
      </Field>
    </FormDialog>
  );
}
