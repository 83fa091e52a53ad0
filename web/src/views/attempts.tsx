// Attempts as they happen, the newest first.

import { useMemo } from "preact/hooks";

import type { Shown } from "../model/live";
import type { Attempt } from "../model/protocol";
import { open } from "../model/route";
import { seconds, timeOfDay } from "../widgets/format";
import { VirtualList } from "../widgets/virtual_list";
import { splitKey } from "./queue";

const SIGN: Record<string, [sign: string, kind: string]> = {
  scheduled: ["✓", "good"],
  unschedulable: ["✗", "bad"],
  error: ["!", "bad"],
};

export function Attempts({ cluster, version }: Shown) {
  const attempts = useMemo(() => cluster.attempts.toReversed(), [cluster, version]);
  return (
    <VirtualList
      label="Attempts, the newest first"
      count={attempts.length}
      rowHeight={42}
      empty="No attempts yet"
      onActivate={(index) => open({ view: "attempt", id: attempts[index].id })}
      row={(index) => <AttemptLine attempt={attempts[index]} />}
    />
  );
}

export function AttemptLine({ attempt }: { attempt: Attempt }) {
  const { time, pod, node, result, reason, durationMs, nominated, victims } = attempt;
  const [sign, kind] = SIGN[result] ?? ["?", ""];
  const [namespace, name] = splitKey(pod);
  return (
    <>
      <span class={`badge ${kind}`} title={result}>
        <span aria-hidden="true">{sign}</span>
        <span class="visually-hidden">{result}</span>
      </span>
      <span class="grow">
        <span class="clip line">
          <span class="what">{name}</span> <span class="faint">{namespace}</span>
        </span>
        <span class="clip line faint" title={reason}>
          {node
            ? `→ ${node}`
            : nominated
              ? `evicts ${victims} on ${nominated}`
              : reason || result}
        </span>
      </span>
      <span class="right">
        <span class="line faint">{timeOfDay(time / 1000)}</span>
        <span class="line">{seconds(durationMs / 1000)}</span>
      </span>
    </>
  );
}
