// The scheduler itself: who leads, its profiles and plugins with the time each takes, its configuration.

import type { Cluster } from "../model/cluster";
import type { Shown } from "../model/live";
import { count, seconds } from "../widgets/format";
import { Fact } from "./explanation";

export function SchedulerView({ cluster, version }: Shown) {
  const { scheduler, counts } = cluster.state;
  return (
    <div class="detail" tabIndex={0} role="region" aria-label="Scheduler">
      <dl class="facts-list">
        <Fact name="Version">
          {scheduler.version} <span class="faint">as kube-scheduler {scheduler.upstream}</span>
        </Fact>
        <Fact name="Leader">{leaderText(cluster)}</Fact>
        <Fact name="Attempts">
          {count(counts.attempts)} <span class="faint">since the page follows</span>
        </Fact>
      </dl>
      <PluginTimes cluster={cluster} version={version} />
      {scheduler.profiles.map((profile) => (
        <details key={profile.name}>
          <summary>
            <span>
              Profile <b>{profile.name}</b>
            </span>
            <span class="faint">{profile.plugins.length} plugins</span>
          </summary>
          <table>
            <thead>
              <tr>
                <th scope="col">Plugin</th>
                <th scope="col">Extension points</th>
                <th scope="col" class="right">
                  Weight
                </th>
              </tr>
            </thead>
            <tbody>
              {profile.plugins.map((plugin) => (
                <tr key={plugin.name}>
                  <td>{plugin.name}</td>
                  <td class="faint">{plugin.points.join(", ")}</td>
                  <td class="right">{plugin.weight || ""}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      ))}
      <details>
        <summary>
          <span>Configuration</span>
        </summary>
        <pre>{scheduler.config}</pre>
      </details>
    </div>
  );
}

export function leaderText(cluster: Cluster): string {
  const { elects, leads, identity } = cluster.state.scheduler.leader;
  if (!elects) return "no election; this process schedules";
  return leads ? `this process, ${identity}` : identity || "none yet";
}

function PluginTimes({ cluster }: Shown) {
  const times = [...cluster.pluginTimes.values()].filter((entry) => entry.plugin !== "");
  if (times.length === 0) return null;
  times.sort((a, b) => b.totalMs - a.totalMs);
  const largest = times[0].totalMs || 1;
  return (
    <>
      <h3>
        Time per plugin <span class="faint">bars: in total; numbers: per call</span>
      </h3>
      <ul class="bars plugin-times">
        {times.map(({ point, plugin, calls, totalMs }) => (
          <li class="bar-row" key={`${point} ${plugin}`}>
            <span class="name">
              {plugin}
              <br />
              <span class="faint">{point}</span>
            </span>
            <span class="track" aria-hidden="true">
              <i class="use" style={{ width: `${(100 * totalMs) / largest}%` }} />
            </span>
            <span title={`${count(calls)} calls`}>
              <b class="number">{calls ? seconds(totalMs / 1000 / calls) : "–"}</b>
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
