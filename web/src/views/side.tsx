// The panel beside the map: what was opened, or else the attempts as they happen and the scheduler.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { Cluster } from "../model/cluster";
import type { Shown } from "../model/live";
import { close, open, route } from "../model/route";
import { AttemptView } from "./attempt";
import { Attempts } from "./attempts";
import { NodeView } from "./node";
import { PodView } from "./pod";
import { SchedulerView } from "./scheduler";

export function Side({ cluster, version }: Shown) {
  const { view } = route.value;
  const panel = useRef<HTMLElement>(null);
  const isOpened = view === "pod" || view === "node" || view === "attempt";
  useEffect(() => {
    if (isOpened) panel.current?.querySelector<HTMLElement>("[data-title]")?.focus();
  }, [JSON.stringify(route.value)]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" && isOpened) close();
  };
  return (
    <aside ref={panel} class={`panel side${isOpened ? " opened" : ""}`} aria-label="Details" onKeyDown={onKeyDown}>
      {!isOpened && <Tabs scheduler={view === "scheduler"} />}
      {content(cluster, version)}
    </aside>
  );
}

function content(cluster: Cluster, version: number) {
  const current = route.value;
  switch (current.view) {
    case "pod":
      return <PodView cluster={cluster} version={version} namespace={current.namespace} name={current.name} />;
    case "node":
      return <NodeView cluster={cluster} version={version} name={current.name} />;
    case "attempt":
      return <AttemptView cluster={cluster} version={version} id={current.id} />;
    case "scheduler":
      return <SchedulerView cluster={cluster} version={version} />;
    case "none":
      return <Attempts cluster={cluster} version={version} />;
  }
}

function Tabs({ scheduler }: { scheduler: boolean }) {
  return (
    <div class="panel-head">
      <span class="joined" role="group" aria-label="Panel">
        <button aria-pressed={!scheduler} onClick={() => open({ view: "none" })}>
          Attempts
        </button>
        <button aria-pressed={scheduler} onClick={() => open({ view: "scheduler" })}>
          Scheduler
        </button>
      </span>
    </div>
  );
}

export function OpenedHead(props: { kind: string; title: string; note?: string; badge?: ComponentChildren }) {
  return (
    <div class="panel-head one-line">
      <h2 class="title" tabIndex={-1} data-title>
        <span>
          <small>{props.kind} </small>
          {props.title}
          {props.note && <small> {props.note}</small>}
        </span>
        {props.badge}
      </h2>
      <span class="spacer" />
      <button onClick={close} aria-label="Close (Escape)" title="Close (Escape)">
        ✕
      </button>
    </div>
  );
}
