// One recorded attempt: what was decided at that moment, and why.

import { useEffect } from "preact/hooks";

import type { Explanation } from "../model/explanation";
import { showAttempt } from "../model/live";
import type { Shown } from "../model/live";
import type { Attempt } from "../model/protocol";
import { markNodes } from "../model/verdicts";
import { dateAndTime, seconds } from "../widgets/format";
import { ExplanationView, Fact, OutcomeBadge } from "./explanation";
import { useDocument } from "./loading";
import { openPod, splitKey } from "./queue";
import { OpenedHead } from "./side";

interface AttemptDocument {
  attempt: Attempt;
  explanation: Explanation | null;
}

export function AttemptView({ cluster, id }: Shown & { id: number }) {
  const { value, error } = useDocument<AttemptDocument>(`attempts/${id}`, "");
  useEffect(() => {
    markNodes(value?.explanation ?? null);
    return () => markNodes(null);
  }, [value]);
  const attempt = value?.attempt ?? cluster.attempts.find((kept) => kept.id === id);
  const [namespace, name] = attempt ? splitKey(attempt.pod) : ["", `number ${id}`];
  return (
    <>
      <OpenedHead
        kind="Attempt"
        title={name}
        note={namespace}
        badge={value?.explanation && <OutcomeBadge outcome={value.explanation.outcome} />}
      />
      <div class="detail" tabIndex={0} role="region" aria-label={`Attempt ${id}`}>
        {error && <p class="error">{error}</p>}
        {attempt && (
          <>
            <dl class="facts-list">
              <Fact name="Time">{dateAndTime(attempt.time / 1000)}</Fact>
              <Fact name="Took">{seconds(attempt.durationMs / 1000)}</Fact>
            </dl>
            <p class="actions">
              <button onClick={() => openPod(attempt.pod)}>The pod as of now</button>
              <button onClick={() => void showAttempt(id)}>The cluster right after it</button>
            </p>
          </>
        )}
        {value?.explanation && <ExplanationView explanation={value.explanation} />}
        {value && !value.explanation && (
          <p class="nothing">No details of this attempt are kept: only the newest ones are.</p>
        )}
      </div>
    </>
  );
}
