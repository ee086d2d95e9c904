// The report of a simulation over time: waits, charts of every series, and totals.

import { html, useMemo } from "./dom.js";
import { duration, grouped, largest, number, plural } from "./format.js";
import { Records } from "./other.js";
import { Bar, DataTable } from "./tables.js";
import { Charts, withUnit } from "./timechart.js";

// Charts that the playback of the same simulation has too.
const OF_PLAYBACK = ["Pods", "Utilisation"];

export function TimelinePage({ report, documents }) {
  const isPlayed = documents.some((one) => one.kind === "Playback");
  const charts = useMemo(() => chartsOf(report.series.filter((one) => !isPlayed || !OF_PLAYBACK.includes(one.chart))), [report, isPlayed]);
  return html`<${Waits} report=${report} />
    <${Charts} charts=${charts} />
    <section aria-labelledby="totals-heading">
      <h2 id="totals-heading">Totals</h2>
      <dl class="facts">${Object.entries(report.totals)
        .filter(([, count]) => count)
        .map(([name, count]) => html`<dt>${TOTALS[name] ?? name}</dt><dd>${number(count)}</dd>`)}</dl>
    </section>
    <${Records} name="moves" heading="Moves in the queue" records=${report.moves.map((move) => ({ ...move, origin: move.origin || "new", destination: move.destination || "gone" }))} />
    <${Records} name="requests" heading="Requests to the API server" records=${report.requests} />
    <p class="dim">Seed ${report.seed}. Decision log: ${plural(report.decisions, "line")}, SHA-256 <code>${report.decisionDigest}</code>; the same scenario and seed give the same.</p>`;
}

/** The answer in one sentence: what arrived, and how long it waited. */
export function timelineSentence({ partial, durationSeconds, totals, waits: [all] }) {
  const waited = all.p50Seconds === null ? "" : ` Half of them waited at most ${duration(all.p50Seconds)}, the longest ${duration(all.maxSeconds)}.`;
  const when = `in ${duration(durationSeconds)}${partial ? ", until the interruption" : ""}`;
  return `${number(totals.bound)} of ${plural(totals.arrived, "pod")} got a node ${when}.${waited} ${plural(totals.pending, "pod is", "pods are")} pending at the end.`;
}

const TOTALS = {
  arrived: "pods arrived",
  bound: "pods bound",
  finished: "pods finished",
  gaveUp: "pods deleted before they got a node",
  disrupted: "pods preempted",
  drained: "pods drained from their node",
  evicted: "pods evicted from a failed node",
  removed: "pods deleted because their node was removed",
  restarted: "pods that started over after their node failed",
  lost: "pods lost: stopped before their end, and not created again",
  pending: "pods pending at the end",
  running: "pods on nodes at the end",
  attempts: "scheduling attempts",
  rejected: "attempts that found no node",
  failed: "attempts that ended in an error",
  bindingFailures: "bindings that were undone",
  nodes: "nodes at the end",
};

/** How long pods waited, by priority and as a histogram, and how full nodes were. */
function Waits({ report }) {
  const { boundsSeconds, counts } = report.waitHistogram;
  const most = largest(counts);
  const bars = counts.map((count, at) => ({
    name: at < boundsSeconds.length ? `under ${duration(boundsSeconds[at])}` : "longer",
    count,
  }));
  const seconds = (heading, field) => ({
    heading,
    text: (row) => row[field] ?? -1,
    cell: (row) => (row[field] === null ? "–" : duration(row[field])),
    isNumber: true,
  });
  const counted = (heading, field) => ({ heading, text: (row) => row[field], isNumber: true });
  return html`<section aria-labelledby="waits-heading">
    <h2 id="waits-heading">How long pods waited for a node</h2>
    <${DataTable}
      caption="From creation to binding, by priority"
      rows=${report.waits}
      columns=${[
        { heading: "Priority", text: (row) => row.priority },
        ...[["Arrived", "arrived"], ["Bound", "bound"], ["Pending", "pending"], ["Preempted", "disrupted"]].map((one) => counted(...one)),
        ...[["Mean", "meanSeconds"], ["P50", "p50Seconds"], ["P90", "p90Seconds"], ["P99", "p99Seconds"], ["Longest", "maxSeconds"]].map((one) => seconds(...one)),
        counted("Pod hours pending", "pendingPodHours"),
      ]}
    />
    <${DataTable}
      caption="Pods by their wait"
      rows=${bars}
      columns=${[
        { heading: "Wait", text: (bar) => bar.name },
        { heading: "Pods", text: (bar) => bar.count, isNumber: true },
        { heading: "Compared", text: (bar) => bar.count, cell: (bar) => html`<${Bar} share=${bar.count / most} bare />` },
      ]}
    />
    <${DataTable}
      caption="Requested of allocatable"
      rows=${report.resources}
      columns=${[
        { heading: "Resource", text: (row) => row.resource },
        ...[["Mean", "meanShare"], ["Peak", "peakShare"], ["At the end", "finalShare"], ["Fragmented", "meanFragmentation"]].map(
          ([heading, field]) => ({ heading, text: (row) => row[field] ?? -1, cell: (row) => html`<${Bar} share=${row[field]} />` }),
        ),
      ]}
    />
  </section>`;
}

/** A chart for every group of series. */
function chartsOf(series) {
  return [...grouped(series, (one) => withUnit(one.chart, one))].map(([title, found]) => ({
    title,
    unit: found[0].unit,
    ...timesOf(found[0].values),
    lines: found.map((one) => ({ name: one.name, values: one.values.means })),
  }));
}

/** The middles of the bins, and what they cover together. */
function timesOf({ widthSeconds, means }) {
  return { times: means.map((_, at) => (at + 0.5) * widthSeconds), span: [0, means.length * widthSeconds] };
}
