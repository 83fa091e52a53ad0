// What would make a waiting pod fit. Searched by the server when asked for: each suggestion is tried there.

import { useSignal } from "@preact/signals";

import type { Suggestion } from "../model/explanation";
import { useDocument } from "./loading";

interface Props {
  path: string;
  again: unknown;
}

export function Suggestions({ path, again }: Props) {
  const { value, error } = useDocument<{ suggestions: Suggestion[]; note: string }>(path, again);
  return (
    <>
      <h3>What would place it</h3>
      {error && <p class="error">{error}</p>}
      {!value && !error && <p class="faint">Trying changes …</p>}
      {value?.note && <p class="faint">{value.note}</p>}
      {value && value.suggestions.length === 0 && !value.note && <p class="faint">No small change that was tried.</p>}
      {value?.suggestions.map((suggestion, index) => (
        <SuggestionLine key={index} suggestion={suggestion} />
      ))}
    </>
  );
}

function SuggestionLine({ suggestion }: { suggestion: Suggestion }) {
  const isOpen = useSignal(false);
  return (
    <details onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>
        <span>{suggestion.text}</span>
        {suggestion.verified && (
          <span class="badge good" title="The scheduling cycle was run on the changed cluster">
            tried
          </span>
        )}
      </summary>
      {isOpen.value && (
        <div>
          {suggestion.patches.map((patch, at) => (
            <pre key={at}>
              {`${patch.kind} ${[patch.namespace, patch.name].filter(Boolean).join("/")}\n`}
              {JSON.stringify(patch.patch, null, 2)}
            </pre>
          ))}
        </div>
      )}
    </details>
  );
}
