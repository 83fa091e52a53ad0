// What can be done to one node of a demo.

import type { Shown } from "../model/live";
import { close } from "../model/route";
import { run } from "./demo_bar";

export function NodeActions({ cluster, row }: Shown & { row: number }) {
  const { nodes } = cluster;
  const can = (name: string) => cluster.state.actions.includes(name);
  const body = { node: nodes.name[row] };
  if (!can("cordon")) return null;
  return (
    <p class="actions">
      {nodes.unschedulable[row] ? (
        <button onClick={() => run("uncordon", body)}>Uncordon</button>
      ) : (
        <button onClick={() => run("cordon", body)}>Cordon</button>
      )}
      {can("drain") && <button onClick={() => run("drain", body)}>Drain</button>}
      {can("fail") && (
        <button class="danger" onClick={() => run("fail", body)}>
          Fail
        </button>
      )}
      {can("repair") && <button onClick={() => run("repair", body)}>Repair</button>}
      {can("delete") && (
        <button
          class="danger"
          onClick={() => {
            run("delete", { kind: "Node", name: nodes.name[row] });
            close();
          }}
        >
          Delete
        </button>
      )}
    </p>
  );
}
