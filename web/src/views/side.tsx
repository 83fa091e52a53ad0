// The panel beside the map: what was opened, or else the attempts as they happen and the scheduler.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { Cluster } from "../model/cluster";
import type { Shown } from "../model/live";
import { close, isOpened as isOpenedRoute, open, route } from "../model/route";
import type { Route } from "../model/route";
import { AttemptView } from "./attempt";
import { Attempts } from "./attempts";
import { Evictions } from "./evictions";
import { Groups, GroupView } from "./groups";
import { NodeView } from "./node";
import { PodView } from "./pod";
import { SchedulerView } from "./scheduler";

export function Side({ cluster, version }: Shown) {
  const { view } = route.value;
  const panel = useRef<HTMLElement>(null);
  const isOpened = isOpenedRoute(route.value);
  useEffect(() => {
    if (isOpened) panel.current?.querySelector<HTMLElement>("[data-title]")?.focus();
  }, [JSON.stringify(route.value)]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" && isOpened) close();
  };
  return (
    <aside ref={panel} class={`panel side${isOpened ? " opened" : ""}`} aria-label="Details" onKeyDown={onKeyDown}>
      {!isOpened && <Tabs view={view} />}
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
    case "group":
      return <GroupView cluster={cluster} version={version} namespace={current.namespace} name={current.name} />;
    case "evictions":
      return <Evictions cluster={cluster} version={version} />;
    case "groups":
      return <Groups cluster={cluster} version={version} />;
    case "scheduler":
      return <SchedulerView cluster={cluster} version={version} />;
    case "none":
      return <Attempts cluster={cluster} version={version} />;
  }
}

const TABS = [
  ["none", "Attempts"],
  ["evictions", "Evictions"],
  ["groups", "Groups"],
  ["scheduler", "Scheduler"],
] as const;

function Tabs({ view }: { view: Route["view"] }) {
  return (
    <div class="panel-head">
      <span class="joined" role="group" aria-label="Panel">
        {TABS.map(([name, title]) => (
          <button key={name} aria-pressed={view === name} onClick={() => open({ view: name })}>
            {title}
          </button>
        ))}
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
