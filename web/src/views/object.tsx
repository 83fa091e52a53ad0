// What pods and nodes have in common when they are opened: YAML, events, and what they ask for.

import { useSignal } from "@preact/signals";

import { CopyBlock } from "../widgets/copy";
import { dateAndTime, plural, timeOfDay } from "../widgets/format";
import { useDocument } from "./loading";

export interface PageEvent {
  first: number;
  time: number;
  count: number;
  type: string;
  reason: string;
  note: string;
}

export interface Ask {
  name: string;
  texts: string[];
  more: number;
}

// Read when it is opened, and again when the object has changed.
export function Manifest({ path, again, label }: { path: string; again: unknown; label: string }) {
  const isOpen = useSignal(false);
  return (
    <details class="manifest" onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>
        <span>YAML</span>
        <span class="faint">as the scheduler has it</span>
      </summary>
      {isOpen.value && <ManifestText path={path} again={again} label={label} />}
    </details>
  );
}

function ManifestText({ path, again, label }: { path: string; again: unknown; label: string }) {
  const { value, error } = useDocument<{ text: string }>(path, again);
  return (
    <div>
      {error && <p class="error">{error}</p>}
      {!value && !error && <p class="faint">Reading …</p>}
      {value && <CopyBlock text={value.text} label={label} />}
    </div>
  );
}

export function Events({ events }: { events: PageEvent[] }) {
  if (events.length === 0) return null;
  return (
    <>
      <h3>Events</h3>
      <ul class="event-list">
        {events.map((event) => (
          <li key={`${event.reason} ${event.note}`}>
            <span class="event-head">
              <b class={event.type === "Warning" ? "bad-text" : ""}>{event.reason}</b>
              <span class="faint" title={`first at ${dateAndTime(event.first / 1000)}`}>
                {event.count > 1 && `${plural(event.count, "time")}, last `}
                {timeOfDay(event.time / 1000)}
              </span>
            </span>
            <span>{event.note}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

export function Asks({ asks }: { asks: Ask[] }) {
  if (asks.length === 0) return null;
  return (
    <>
      <h3>What it asks for</h3>
      <dl class="asks">
        {asks.map((ask) => (
          <div key={ask.name}>
            <dt>{ask.name}</dt>
            <dd>
              {ask.texts.map((text) => (
                <code key={text}>{text}</code>
              ))}
              {ask.more > 0 && <span class="faint">and {ask.more} more</span>}
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}
