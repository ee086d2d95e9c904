// Where the pending pods of a cluster go: who stays pending and why, the nodes afterwards, totals.

import { html, useMemo } from "./dom.js";
import { MapSection } from "./cluster.js";
import { byLength, grouped, largest, number, plural, some } from "./format.js";
import { Change, Listing, Notes, Stack } from "./tables.js";

export function simulationSentence({ summary }) {
  const where = summary.placed ? `, on ${number(summary.nodesUsed)} of ${plural(summary.nodes, "node")}` : "";
  const evicted = summary.evicted ? `; ${plural(summary.evicted, "pod is", "pods are")} evicted for others` : "";
  return `${number(summary.placed)} of ${plural(summary.pods, "pending pod")} get a node${where}${evicted}.`;
}

export function SimulationPage({ report }) {
  const { summary } = report;
  const view = useMemo(() => viewOf(report), [report]);
  const own = useMemo(() => (summary.placed ? [placedMeasure(view)] : []), [report]);
  return html`<${Notes} report=${report} />
    ${report.partial && html`<p class="note">The simulation was interrupted; these are the decisions so far.</p>`}
    <${Stack} parts=${[
      ["get a node", summary.placed, "good"],
      ["held back by a gate", summary.gated, "s4"],
      ["not tried", summary.notTried, "calm"],
      ["get none", summary.unplaced, "wrong"],
    ]} />
    <${Unplaced} pods=${report.unplaced} />
    ${summary.nodes > 0 && html`<${MapSection} view=${view} own=${own} />`}
    <section>
      <h2>The cluster before and after</h2>
      <${Change}
        before=${summary.resources.map((use) => ({ ...use, requested: use.requestedBefore, share: use.shareBefore }))}
        after=${summary.resources.map((use) => ({ ...use, requested: use.requestedAfter, share: use.shareAfter }))}
      />
    </section>
    <${Listing}
      heading="Evicted pods"
      caption="In order of eviction"
      rows=${report.evictions}
      columns=${[
        { heading: "Pod", text: (one) => one.pod },
        { heading: "Priority", text: (one) => one.priority, isNumber: true },
        { heading: "Node", text: (one) => one.node },
        { heading: "For", text: (one) => one.preemptor },
        { heading: "Controller", text: (one) => one.controller || "none: nothing creates it again" },
      ]}
    />
    <${Listing}
      heading="Placements"
      caption="In the order of placing"
      rows=${report.placements}
      columns=${[
        { heading: "Pod", text: (one) => one.pod },
        { heading: "Node", text: (one) => one.node },
        { heading: "Attempts", text: (one) => one.attempts, isNumber: true },
        { heading: "Evicted for it", text: (one) => one.preempted.join(", ") },
        { heading: "Waits for", text: (one) => one.waitsFor.join(", ") },
      ]}
    />`;
}

/** Pods without a node by reason, the most frequent first. */
function Unplaced({ pods }) {
  if (!pods.length) return null;
  const reason = (pod) => (pod.unknown ? "not known, because the input lacks objects" : pod.reasons.join("; "));
  return html`<section>
    <h2>Pods that stay pending, by cause</h2>
    <ol class="cards">${byLength(grouped(pods, reason)).map(
      ([why, found]) => html`<li class="card">
        <h3><span class="count">${plural(found.length, "pod")}</span> ${why}</h3>
        <p>${found[0].message}</p>
        <p class="dim">${some(found.map((pod) => pod.pod), 6)}</p>
        <p>What would help: <code>kubesched why ${found[0].pod}</code></p>
      </li>`,
    )}</ol>
  </section>`;
}

/** The nodes at the end as the map takes them. */
function viewOf(report) {
  const zoneOf = ({ region, zone }) => [region, zone].filter(Boolean).join("/");
  const zones = [...new Set(report.nodes.map(zoneOf))].sort();
  const nodes = [...report.nodes].sort((one, other) => zoneOf(one).localeCompare(zoneOf(other)));
  const resources = nodes.length ? nodes[0].resources.map((use) => use.resource) : [];
  const column = (field) => resources.map((_, at) => nodes.map((node) => node.resources[at][field]));
  return {
    zones,
    pools: [""],
    resources,
    workloads: [],
    nodes: {
      names: nodes.map((node) => node.node),
      zones: nodes.map((node) => zones.indexOf(zoneOf(node))),
      pools: nodes.map(() => 0),
      cordoned: nodes.map(() => false),
      ready: nodes.map(() => true),
      allocatable: column("allocatable"),
      requested: column("requestedAfter"),
      pods: nodes.map(() => []),
      placed: nodes.map((node) => node.placed),
    },
  };
}

function placedMeasure(view) {
  const { placed } = view.nodes;
  const most = largest(placed);
  return {
    id: "placed",
    group: "Simulation",
    label: "pods placed here",
    share: (row) => placed[row] / most,
    text: (row) => `${plural(placed[row], "pod")} placed here`,
    low: "0",
    high: plural(most, "pod"),
  };
}
