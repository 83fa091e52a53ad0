// What can be done to one node of a demo. What ends pods is asked about before.

import type { Shown } from "../model/live";
import { close } from "../model/route";
import { plural } from "../widgets/format";
import { run } from "./demo_bar";
import { askBefore } from "./question";

export function NodeActions({ cluster, row }: Shown & { row: number }) {
  const { nodes } = cluster;
  const can = (name: string) => cluster.state.actions.includes(name);
  const name = nodes.name[row];
  const body = { node: name };
  const pods = plural(nodes.podCount[row], "pod");
  if (!can("cordon")) return null;
  return (
    <p class="actions">
      {nodes.unschedulable[row] ? (
        <button onClick={() => run("uncordon", body)}>Uncordon</button>
      ) : (
        <button onClick={() => run("cordon", body)}>Cordon</button>
      )}
      {can("drain") && (
        <button
          onClick={() =>
            askBefore({
              title: `Drain ${name}?`,
              text: `It is cordoned, and its ${pods} are evicted, except those that belong to the node or that a budget protects.`,
              confirm: "Drain",
              run: () => run("drain", body),
            })
          }
        >
          Drain…
        </button>
      )}
      {nodes.ready[row]
        ? can("fail") && (
            <button
              class="danger"
              onClick={() =>
                askBefore({
                  title: `Let ${name} fail?`,
                  text: `Its kubelet stops. The node is lost after a while, and its ${pods} are made again elsewhere.`,
                  confirm: "Fail",
                  run: () => run("fail", body),
                })
              }
            >
              Fail…
            </button>
          )
        : null}
      {can("repair") && <button onClick={() => run("repair", body)}>Repair</button>}
      {can("delete") && (
        <button
          class="danger"
          onClick={() =>
            askBefore({
              title: `Delete the node ${name}?`,
              text: `Its ${pods} end.`,
              confirm: "Delete",
              run: () => {
                run("delete", { kind: "Node", name });
                close();
              },
            })
          }
        >
          Delete…
        </button>
      )}
    </p>
  );
}
