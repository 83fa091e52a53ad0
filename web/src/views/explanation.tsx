// An explanation, drawn: what was decided, the scores as bars, why nodes do not fit, and what would help.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import type { Explanation, NodeVerdict, Reason } from "../model/explanation";
import { open } from "../model/route";
import { count, plural } from "../widgets/format";

const RANKED_FIRST = 8;
const RANKED_MAX = 200;
const NAMES_MAX = 60;
const PLUGIN_COLOURS = 8;

const OUTCOME: Record<Explanation["outcome"], [text: string, kind: string]> = {
  Scheduled: ["scheduled", "good"],
  Bound: ["on a node", "good"],
  Unschedulable: ["unschedulable", "bad"],
  Gated: ["gated", "warn"],
  Excluded: ["not scheduled here", ""],
  Error: ["error", "bad"],
};

const PREEMPTION: Record<string, string> = {
  Nominated: "pods are evicted for it",
  NoCandidates: "evicting pods does not make it fit anywhere",
  NotEligible: "it may not evict pods",
  Disabled: "no plugin of the profile evicts pods",
  Error: "failed",
};

export function OutcomeBadge({ outcome }: { outcome: Explanation["outcome"] }) {
  const [text, kind] = OUTCOME[outcome] ?? [outcome, ""];
  return <span class={`badge ${kind}`}>{text}</span>;
}

interface Props {
  explanation: Explanation;
  facts?: ComponentChildren; // shown with those of the explanation
  help?: ComponentChildren; // what would place the pod
}

export function ExplanationView({ explanation, facts, help }: Props) {
  const { search, preemption, group } = explanation;
  return (
    <>
      <p class="lead">{explanation.summary}</p>
      {explanation.message && <p class="message">{explanation.message}</p>}
      <dl class="facts-list">
        {facts}
        {explanation.node && (
          <Fact name="Node">
            <NodeLink name={explanation.node} />
          </Fact>
        )}
        {explanation.nominatedNode && (
          <Fact name="Nominated">
            <NodeLink name={explanation.nominatedNode} />
          </Fact>
        )}
        {search && (
          <Fact name="Search">
            {count(search.evaluated)} of {plural(search.nodes, "node")} looked at, {count(search.feasible)} fit
          </Fact>
        )}
        {explanation.attempt && <Fact name="Attempts">{count(explanation.attempt.attempts)}</Fact>}
        {preemption && <Fact name="Preemption">{PREEMPTION[preemption.result] ?? preemption.result}</Fact>}
        {group && (
          <Fact name="Group">
            {group.name}: {count(group.fitting)}
            {group.minCount === null ? "" : ` of ${count(group.minCount)}`} members fit. {group.message}
          </Fact>
        )}
      </dl>
      <Victims explanation={explanation} />
      {help}
      <Scores explanation={explanation} />
      <Rejections reasons={explanation.reasons} total={explanation.nodes.length} />
      <WaitingFor explanation={explanation} />
    </>
  );
}

export function Fact(props: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </>
  );
}

export function NodeLink({ name }: { name: string }) {
  return (
    <button class="link" onClick={() => open({ view: "node", name })}>
      {name}
    </button>
  );
}

function Victims({ explanation }: { explanation: Explanation }) {
  if (explanation.victims.length === 0) return null;
  return (
    <>
      <h3>Evicted for it</h3>
      <ul class="plain-list">
        {explanation.victims.map((victim) => (
          <li key={`${victim.namespace}/${victim.name}`}>
            {victim.namespace}/{victim.name} <span class="faint">priority {victim.priority}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

// --- Scores --------------------------------------------------------------------------------------

function Scores({ explanation }: { explanation: Explanation }) {
  const shown = useSignal(RANKED_FIRST);
  const ranked = explanation.nodes.filter((node) => node.verdict === "Feasible" && node.total !== null);
  if (ranked.length === 0) return null;
  const plugins = Object.keys(ranked[0].scores).filter((plugin) =>
    ranked.slice(0, RANKED_MAX).some((node) => (node.scores[plugin]?.weighted ?? 0) !== 0),
  );
  const largest = Math.max(1, ...ranked.slice(0, RANKED_MAX).map((node) => node.total ?? 0));
  const more = Math.min(ranked.length, RANKED_MAX) - shown.value;
  return (
    <>
      <h3>
        Scores <span class="faint">of {plural(ranked.length, "node")} that fit</span>
      </h3>
      <Choice explanation={explanation} />
      <div class="keys">
        {plugins.map((plugin, index) => (
          <span key={plugin}>
            <i style={{ background: `var(--plugin-${index % PLUGIN_COLOURS})` }} aria-hidden="true" />
            {plugin}
          </span>
        ))}
      </div>
      <ol class="bars">
        {ranked.slice(0, shown.value).map((node) => (
          <ScoreBar
            key={node.name}
            node={node}
            plugins={plugins}
            largest={largest}
            chosen={node.name === explanation.node}
          />
        ))}
      </ol>
      {more > 0 && (
        <button class="plain" onClick={() => (shown.value += 40)}>
          Show {Math.min(40, more)} more
        </button>
      )}
    </>
  );
}

function Choice({ explanation: { choice } }: { explanation: Explanation }) {
  if (!choice || !choice.nextNode) return null;
  const main = choice.differences.find((entry) => entry.difference !== 0);
  return (
    <p class="faint">
      {choice.margin > 0
        ? `${choice.margin} ahead of ${choice.nextNode}${main ? `, most by ${main.plugin}` : ""}.`
        : `${plural(choice.tiedCount, "node")} have the best total.`}
    </p>
  );
}

interface ScoreBarProps {
  node: NodeVerdict;
  plugins: string[];
  largest: number;
  chosen: boolean;
}

function ScoreBar({ node, plugins, largest, chosen }: ScoreBarProps) {
  const parts = plugins.map((plugin) => ({ plugin, weighted: node.scores[plugin]?.weighted ?? 0 }));
  const said = parts.map(({ plugin, weighted }) => `${plugin} ${weighted}`).join(", ");
  return (
    <li class={`bar-row${chosen ? " chosen" : ""}`}>
      <span class="name clip" title={node.name}>
        {chosen && <span title="chosen">✓ </span>}
        <NodeLink name={node.name} />
      </span>
      <span class="track" title={said} aria-hidden="true">
        {parts.map(({ plugin, weighted }, index) => (
          <i
            key={plugin}
            style={{
              width: `${(100 * Math.max(0, weighted)) / largest}%`,
              background: `var(--plugin-${index % PLUGIN_COLOURS})`,
            }}
          />
        ))}
      </span>
      <b class="number">{node.total}</b>
      <span class="visually-hidden">{said}</span>
    </li>
  );
}

// --- Rejections ----------------------------------------------------------------------------------

function Rejections({ reasons, total }: { reasons: Reason[]; total: number }) {
  if (reasons.length === 0) return null;
  return (
    <>
      <h3>Why nodes do not fit</h3>
      {reasons.map((reason) => (
        <details key={`${reason.plugin} ${reason.reason}`}>
          <summary>
            <span>
              {reason.reason}
              <br />
              <span class="faint">{reason.plugin}</span>
            </span>
            <span>
              <b class="number">{count(reason.count)}</b>
              <span class="faint"> of {count(total)}</span>
            </span>
          </summary>
          <NodeNames names={reason.nodes} />
        </details>
      ))}
    </>
  );
}

function NodeNames({ names }: { names: string[] }) {
  return (
    <ul class="names">
      {names.slice(0, NAMES_MAX).map((name) => (
        <li key={name}>
          <NodeLink name={name} />
        </li>
      ))}
      {names.length > NAMES_MAX && <li class="faint">and {count(names.length - NAMES_MAX)} more</li>}
    </ul>
  );
}

function WaitingFor({ explanation }: { explanation: Explanation }) {
  if (explanation.waitingFor.length === 0) return null;
  return (
    <>
      <h3>Tried again after</h3>
      <ul class="plain-list">
        {explanation.waitingFor.map((event) => (
          <li key={`${event.resource} ${event.action}`}>
            {event.resource}: {event.action} <span class="faint">{event.plugins.join(", ")}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
