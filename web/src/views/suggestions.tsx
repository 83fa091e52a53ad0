// What would make a waiting pod fit. Searched by the server when asked for: each suggestion is tried there.

import { useSignal } from "@preact/signals";

import { askBefore } from "../forms/question";
import { run } from "../forms/demo_bar";
import type { ObjectPatch, Suggestion } from "../model/explanation";
import { CopyBlock } from "../widgets/copy";
import { useDocument } from "./loading";

interface Props {
  path: string;
  again: unknown;
  pod: { namespace: string; name: string };
  canApply: boolean;
}

interface Suggested {
  suggestions: Suggestion[];
  note: string;
  tried: string[];
}

export function Suggestions({ path, again, pod, canApply }: Props) {
  const { value, error } = useDocument<Suggested>(path, again);
  return (
    <>
      <h3>What would place it</h3>
      {error && <p class="error">{error}</p>}
      {!value && !error && <p class="faint">Trying changes …</p>}
      {value?.note && <p class="faint">{value.note}</p>}
      {value && value.suggestions.length === 0 && !value.note && (
        <>
          <p>No change was found that places it. Tried were:</p>
          <ul class="tried">
            {value.tried.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </>
      )}
      {value?.suggestions.map((suggestion) => (
        <SuggestionLine key={suggestion.text} suggestion={suggestion} pod={pod} canApply={canApply} />
      ))}
    </>
  );
}

interface LineProps {
  suggestion: Suggestion;
  pod: { namespace: string; name: string };
  canApply: boolean;
}

function SuggestionLine({ suggestion, pod, canApply }: LineProps) {
  const isOpen = useSignal(false);
  const { text, patches, commands, effect, moved } = suggestion;
  const apply = () =>
    moved ? run("move", { namespace: moved.namespace, name: moved.name }) : run("apply", { ...pod, patches });
  // What restarts or deletes something is asked about first.
  const onApply = () =>
    effect || patches.some(removes)
      ? askBefore({ title: "Apply this change?", text: [text, effect].filter(Boolean).join(". "), confirm: "Apply", run: apply })
      : apply();
  return (
    <details onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>
        <span>{text}</span>
        {suggestion.verified && (
          <span class="badge good" title="The scheduling cycle was run on the changed cluster">
            tried
          </span>
        )}
      </summary>
      {isOpen.value && (
        <div class="suggestion">
          {effect && <p>{effect}.</p>}
          {canApply && (patches.length > 0 || moved) && (
            <p class="actions">
              <button class="primary" onClick={onApply}>
                Apply{effect || patches.some(removes) ? "…" : ""}
              </button>
            </p>
          )}
          {commands.length > 0 && <CopyBlock text={commands.join("\n")} label="the kubectl commands" />}
          {patches.length > 0 && <Patches patches={patches} hasCommands={commands.length > 0} />}
        </div>
      )}
    </details>
  );
}

function removes({ patch }: ObjectPatch): boolean {
  return patch.some((operation) => operation.op === "remove" && operation.path === "");
}

function Patches({ patches, hasCommands }: { patches: ObjectPatch[]; hasCommands: boolean }) {
  return (
    <details open={!hasCommands}>
      <summary>
        <span>JSON Patch</span>
      </summary>
      <div>
        {patches.map((patch) => {
          const name = `${patch.kind} ${[patch.namespace, patch.name].filter(Boolean).join("/")}`;
          return (
            <div key={name}>
              <p class="faint">{name}</p>
              <CopyBlock text={JSON.stringify(patch.patch, null, 2)} label={`the patch of ${name}`} />
            </div>
          );
        })}
      </div>
    </details>
  );
}
