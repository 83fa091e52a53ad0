// The whole page.

import { useEffect } from "preact/hooks";

import { ClockControls, DemoBar } from "./forms/demo_bar";
import { QuestionDialog } from "./forms/question";
import { cluster, connection, isPast, problem, version } from "./model/live";
import type { Shown } from "./model/live";
import { notice } from "./model/server";
import { theme, themeChoice } from "./model/settings";
import { NodesPanel } from "./views/nodes";
import { Queue } from "./views/queue";
import { leaderText } from "./views/scheduler";
import { Side } from "./views/side";
import { TimePanel } from "./views/time";
import { count, timeOfDay } from "./widgets/format";

const NOTICE_MS = 6000;
const MODE = { run: "running", demo: "demo", recording: "recording" };

export function App() {
  const current = cluster.value;
  const now = version.value;
  if (!current) {
    return (
      <p class="starting" role="status">
        {problem.value ? `Not connected: ${problem.value}. Trying again …` : "Reading the cluster …"}
      </p>
    );
  }
  return (
    <div class="app">
      <Bar cluster={current} version={now} />
      <Queue cluster={current} version={now} />
      <NodesPanel cluster={current} version={now} />
      <Side cluster={current} version={now} />
      <TimePanel cluster={current} version={now} />
      <QuestionDialog />
      <Notice />
    </div>
  );
}

function Bar({ cluster: current, version: now }: Shown) {
  const { state } = current;
  const time = timeOfDay(state.clock.time / 1000);
  return (
    <header class="bar">
      <h1 class="brand">
        <img src="icon.svg" alt="" />
        kubestow
      </h1>
      <span class="badge">{MODE[state.mode]}</span>
      <ConnectionBadge mode={state.mode} />
      <span class="facts">
        <span>
          <b>{count(current.nodes.count)}</b> {current.nodes.count === 1 ? "node" : "nodes"}
        </span>
        <span>
          <b>{count(current.pods.count)}</b> {current.pods.count === 1 ? "pod" : "pods"}
        </span>
        {state.scheduler.leader.elects && (
          <span title={leaderText(current)}>
            leader <b>{state.scheduler.leader.leads ? "this process" : state.scheduler.leader.identity || "none"}</b>
          </span>
        )}
        <span>
          <b>{time}</b>
          {state.clock.paused ? " paused" : speedText(state.clock.speed)}
        </span>
      </span>
      <span class="spacer" />
      {!isPast.value && <ClockControls cluster={current} version={now} />}
      {!isPast.value && <DemoBar cluster={current} version={now} />}
      <ThemeSwitch />
    </header>
  );
}

function speedText(speed: number): string {
  if (speed === 1) return "";
  return speed === 0 ? " as fast as possible" : ` at ${speed}×`;
}

// What is shown is live only as long as the present is shown, and never of a recording.
function ConnectionBadge({ mode }: { mode: keyof typeof MODE }) {
  const connected = isPast.value ? "looking back" : mode === "recording" ? "connected" : "live";
  const text = { connecting: "connecting", live: connected, lost: "connection lost, trying again" }[connection.value];
  const kind = { connecting: "", live: connected === "live" ? "good" : "", lost: "bad" }[connection.value];
  return (
    <span role="status" class={`badge ${kind}`} title={problem.value}>
      {text}
    </span>
  );
}

function ThemeSwitch() {
  const isDark = theme.value === "dark";
  return (
    <button
      class="plain theme"
      aria-pressed={isDark}
      aria-label="Dark theme"
      title={isDark ? "Light theme" : "Dark theme"}
      onClick={() => (themeChoice.value = isDark ? "light" : "dark")}
    >
      <svg class="theme-icon" viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="8" cy="8" r="6.5" fill="none" stroke="currentColor" stroke-width="1.5" />
        <path d="M8 1.5a6.5 6.5 0 0 1 0 13z" fill="currentColor" />
      </svg>
    </button>
  );
}

function Notice() {
  const current = notice.value;
  useEffect(() => {
    if (!current || current.bad) return;
    const timer = setTimeout(() => (notice.value = null), NOTICE_MS);
    return () => clearTimeout(timer);
  }, [current]);
  return (
    <div class="notices" role="status">
      {current && (
        <div class={`notice${current.bad ? " failed" : ""}`}>
          <span>{current.text}</span>
          <button class="plain" onClick={() => (notice.value = null)} aria-label="Dismiss">
            ✕
          </button>
        </div>
      )}
    </div>
  );
}
