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
      {explanation.mistakes.map((mistake) => (
        <p class="mistake" key={`${mistake.where} ${mistake.text}`}>
          <b>Perhaps misspelt:</b> {mistake.text}
        </p>
      ))}
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
      <Nearest explanation={explanation} />
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
  const compared = ranked.slice(0, RANKED_MAX);
  const least = leastScores(compared);
  const common = [...least.values()].reduce((sum, score) => sum + score, 0);
  const plugins = [...least.keys()].filter((plugin) => compared.some((node) => weighted(node, plugin) !== least.get(plugin)));
  const largest = Math.max(1, ...compared.map((node) => (node.total ?? 0) - common));
  const more = compared.length - shown.value;
  return (
    <>
      <h3>
        Scores <span class="faint">of {plural(ranked.length, "node")} that fit</span>
      </h3>
      <Choice explanation={explanation} />
      {compared.length > 1 && common !== 0 && (
        <p class="faint">Bars begin at {count(common)}, which all of them have.</p>
      )}
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
            least={least}
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

function weighted(node: NodeVerdict, plugin: string): number {
  return node.scores[plugin]?.weighted ?? 0;
}

// By plugin the least that one of the nodes has: what all have does not tell them apart. A node alone is
// compared with nothing.
function leastScores(nodes: NodeVerdict[]): Map<string, number> {
  const least = new Map<string, number>();
  for (const plugin of Object.keys(nodes[0].scores)) {
    least.set(plugin, nodes.length === 1 ? 0 : Math.min(...nodes.map((node) => weighted(node, plugin))));
  }
  return least;
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
  least: Map<string, number>;
  largest: number;
  chosen: boolean;
}

function ScoreBar({ node, plugins, least, largest, chosen }: ScoreBarProps) {
  const parts = plugins.map((plugin) => ({ plugin, more: weighted(node, plugin) - (least.get(plugin) ?? 0) }));
  const said = Object.entries(node.scores)
    .map(([plugin, score]) => `${plugin} ${score.weighted}`)
    .join(", ");
  return (
    <li class={`bar-row${chosen ? " chosen" : ""}`}>
      <span class="name clip" title={node.name}>
        {chosen && <span title="chosen">✓ </span>}
        <NodeLink name={node.name} />
      </span>
      <span class="track" title={said} aria-hidden="true">
        {parts.map(({ plugin, more }, index) => (
          <i
            key={plugin}
            style={{
              width: `${(100 * more) / largest}%`,
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
              <span class="faint">{reason.evidence ? reason.evidence.text : reason.plugin}</span>
            </span>
            <span>
              <b class="number">{count(reason.count)}</b>
              <span class="faint"> of {count(total)}</span>
            </span>
          </summary>
          <div>
            {reason.evidence && <Evidence reason={reason} />}
            {!(reason.evidence && reason.evidence.groups.reduce((sum, group) => sum + group.nodes.length, 0) >= reason.count) && (
              <>
                {reason.evidence && <p class="faint">All of them, rejected by {reason.plugin}:</p>}
                <NodeNames names={reason.nodes} />
              </>
            )}
          </div>
        </details>
      ))}
    </>
  );
}

// What is behind a reason: nodes with the same facts stand together.
function Evidence({ reason: { evidence } }: { reason: Reason }) {
  if (!evidence) return null;
  return (
    <ul class="evidence">
      {evidence.groups.map((group) => (
        <li key={group.text + group.nodes[0]}>
          <span>{group.text}</span>
          <NodeNames names={group.nodes} count={group.count} />
        </li>
      ))}
    </ul>
  );
}

function Nearest({ explanation: { nearest } }: { explanation: Explanation }) {
  if (nearest.length === 0) return null;
  return (
    <>
      <h3>Nodes that almost fit</h3>
      <ol class="nearest">
        {nearest.map((near) => (
          <li key={near.node}>
            <NodeLink name={near.node} />
            <span>{near.text}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

function NodeNames({ names, count: total = names.length }: { names: string[]; count?: number }) {
  const shown = Math.min(NAMES_MAX, names.length);
  return (
    <ul class="names">
      {names.slice(0, shown).map((name) => (
        <li key={name}>
          <NodeLink name={name} />
        </li>
      ))}
      {total > shown && <li class="faint">and {count(total - shown)} more</li>}
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
