// One pod: its explanation as of now, and its last attempts.

import { useEffect } from "preact/hooks";

import { PodActions } from "../forms/pod_actions";
import type { Explanation } from "../model/explanation";
import { isPast } from "../model/live";
import type { Shown } from "../model/live";
import type { Attempt } from "../model/protocol";
import { open } from "../model/route";
import { markNodes } from "../model/verdicts";
import { amount } from "../widgets/format";
import { AttemptLine } from "./attempts";
import { ExplanationView, Fact, OutcomeBadge } from "./explanation";
import { useDocument } from "./loading";
import { Asks, Events, Manifest } from "./object";
import type { Ask, PageEvent } from "./object";
import { Suggestions } from "./suggestions";
import { OpenedHead } from "./side";

interface PodDocument {
  asks: Ask[];
  events: PageEvent[];
  phase: string;
  schedulerName: string;
  explanation: Explanation | null;
  note: string;
  attempts: Attempt[];
}

interface Props extends Shown {
  namespace: string;
  name: string;
}

export function PodView({ cluster, version, namespace, name }: Props) {
  const { pods } = cluster;
  const row = pods.rows.of.get(`${namespace}/${name}`);
  // Asked again when the pod itself has changed, not with each batch: an explanation costs a cycle.
  // Its first attempt that the page sees may end as one before, of which no copy was kept.
  const isTried = cluster.attempts.some((attempt) => attempt.pod === `${namespace}/${name}`);
  const changed = row === undefined ? "" : `${pods.node[row]} ${pods.place[row]} ${pods.reason[row]} ${isTried}`;
  const place = row === undefined ? -1 : pods.place[row];
  const path = `pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const { value, error } = useDocument<PodDocument>(path, changed);
  const facts = row !== undefined && <PodFacts cluster={cluster} version={version} row={row} />;
  const help = place >= 0 && (
    <Suggestions
      path={`${path}/suggestions`}
      again={row === undefined ? -1 : pods.reason[row]}
      pod={{ namespace, name }}
      canApply={cluster.state.actions.includes("apply") && !isPast.value}
    />
  );
  useEffect(() => {
    markNodes(value?.explanation ?? null);
    return () => markNodes(null);
  }, [value]);
  return (
    <>
      <OpenedHead
        kind="Pod"
        title={name}
        note={namespace}
        badge={value?.explanation && <OutcomeBadge outcome={value.explanation.outcome} />}
      />
      <div class="detail" tabIndex={0} role="region" aria-label={`Pod ${name}`}>
        {isPast.value && <p class="past-note">As of now, not of the time that the map shows</p>}
        {row !== undefined && !isPast.value && (
          <PodActions cluster={cluster} version={version} row={row} namespace={namespace} name={name} />
        )}
        {error && <p class="error">{error}</p>}
        {!value && !error && <p class="nothing">Reading …</p>}
        {value?.note && <p class="message">{value.note}</p>}
        {value?.explanation ? (
          <ExplanationView explanation={value.explanation} facts={facts} help={help} />
        ) : (
          <>
            <dl class="facts-list">{facts}</dl>
            {help}
          </>
        )}
        {value && (
          <>
            <Asks asks={value.asks} />
            <Events events={value.events} />
            <Manifest path={`${path}/yaml`} again={changed} label={`the YAML of ${name}`} />
          </>
        )}
        {value && value.attempts.length > 0 && (
          <>
            <h3>Last attempts</h3>
            <AttemptList attempts={value.attempts} />
          </>
        )}
      </div>
    </>
  );
}

function PodFacts({ cluster, row }: Shown & { row: number }) {
  const { pods, words } = cluster;
  const requests = words.requests[pods.requests[row]] ?? [];
  const asked = requests
    .map((value, index) => (value && words.resources[index].name !== "pods" ? `${words.resources[index].name} ${amount(value, words.resources[index].unit)}` : ""))
    .filter(Boolean);
  return (
    <>
      <Fact name="Requests">{asked.join(" · ") || "nothing"}</Fact>
      {words.owners[pods.owner[row]] && <Fact name="Owner">{words.owners[pods.owner[row]]}</Fact>}
      <Fact name="Priority">{pods.priority[row]}</Fact>
      {pods.place[row] >= 0 && <Fact name="Place">{cluster.state.places[pods.place[row]]}</Fact>}
    </>
  );
}

export function AttemptList({ attempts }: { attempts: Attempt[] }) {
  return (
    <ul class="attempt-list">
      {attempts.map((attempt) => (
        <li key={attempt.id}>
          <button class="plain" onClick={() => open({ view: "attempt", id: attempt.id })}>
            <AttemptLine attempt={attempt} />
          </button>
        </li>
      ))}
    </ul>
  );
}
