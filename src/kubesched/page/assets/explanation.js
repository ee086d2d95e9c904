// A decision, drilled down: which filter rejects how many nodes, what each score adds, every node.

import { html, useMemo } from "./dom.js";
import { MapSection } from "./cluster.js";
import { byLength, grouped, largest, number, plural, sum } from "./format.js";
import { Counts, DataTable, Listing, Notes } from "./tables.js";

const BARS = 12;

export function explanationSentence(report, documents = []) {
  if (documents.some((one) => one.kind === "WhyReport")) return "The decision, node by node";
  const { pod, node, outcome, nodeCount, feasibleCount, heldBy, message, withGang } = report;
  if (withGang) return withGang;
  if (outcome === "Gated") return `Pod ${pod} is held back by ${heldBy.plugin}: ${heldBy.reasons.join(", ")}.`;
  const nowhere = `fits none of ${plural(nodeCount, "node")}`;
  const isRejected = report.nodes.length && report.nodes.every((one) => one.rejections.length);
  if (outcome === "Unknown") return isRejected ? `As far as is known, pod ${pod} ${nowhere}.` : `Whether pod ${pod} fits is not known.`;
  if (outcome === "Error") return `Pod ${pod} cannot be judged: ${message}.`;
  if (node) return `Pod ${pod} fits ${number(feasibleCount)} of ${plural(nodeCount, "node")}, and goes to ${node}.`;
  return `Pod ${pod} ${nowhere}.`;
}

export function ExplanationPage({ report, documents }) {
  const view = documents.find((one) => one.kind === "ClusterView");
  const own = useMemo(() => (view ? [report.feasibleCount ? outcomeMeasure(report, view) : distanceMeasure(report, view)] : []), [report, view]);
  const isAsked = documents.some((one) => one.kind === "WhyReport");
  return html`${!isAsked && html`<${Notes} report=${report} /><${Filters} report=${report} />`}
    ${view && html`<${MapSection} view=${view} own=${own} />`}
    <${Scores} report=${report} />
    <${Preemption} found=${report.preemption} />
    <${Nodes} report=${report} />`;
}

/** How many nodes each plugin rejects; a node counts for its first rejection. */
function Filters({ report }) {
  const first = report.nodes.flatMap(({ rejections }) => rejections.slice(0, 1));
  const groups = byLength(grouped(first, ({ plugin, reasons }) => `${plugin} ${reasons.join(", ")}`));
  const step = report.preFilter;
  if (!groups.length && !(step && step.plugin) && !report.feasibleCount) return null;
  return html`<section>
    <h2>Filters: ${number(report.feasibleCount)} of ${plural(report.nodeCount, "node")} left</h2>
    ${step?.plugin && html`<p><strong>${step.plugin}</strong> rejects the pod before any node: ${step.reasons.join(", ")}. ${step.detail}</p>`}
    ${step?.restrictedTo && html`<p>${step.restrictedBy.join(" and ")} ${step.restrictedBy.length > 1 ? "allow" : "allows"} ${plural(step.restrictedTo.length, "node")} only.</p>`}
    <${Counts} rows=${[
      ...groups.map(([, found]) => [found[0].plugin, found.length, found[0].reasons.join(", ")]),
      ...(report.feasibleCount ? [["feasible", report.feasibleCount, ""]] : []),
    ]} />
  </section>`;
}

/** What each plugin adds to the totals of the best nodes, as bars; then all numbers. */
function Scores({ report }) {
  const { scores } = report;
  if (!scores.length) return null;
  const plugins = scores[0].scores.map((one) => one.plugin);
  const most = Math.max(1, scores[0].total);
  const of = (node, plugin) => node.scores.find((one) => one.plugin === plugin);
  return html`<section>
    <h2>Scores of the best nodes</h2>
    ${report.ties.length > 1 && html`<p>${plural(report.ties.length, "node")} have the highest score; one of them is chosen at random.</p>`}
    <ul class="legend names">${plugins.map((plugin, at) => html`<li><span class=${`key s${at % 8}`} aria-hidden="true"></span>${plugin}</li>`)}</ul>
    <ul class="counts scores">${scores.slice(0, BARS).map(
      (node) => html`<li>
        <span class="name">${node.node === report.node ? html`<strong>${node.node}</strong>` : node.node}</span>
        <span class="stack"><span class="track" aria-hidden="true">${node.scores.map(
          (one, at) => html`<span class=${`s${at % 8}`} title=${`${one.plugin}: ${one.weighted}`} style=${{ width: `${(100 * Math.max(0, one.weighted)) / most}%` }}></span>`,
        )}</span></span>
        <span class="number">${number(node.total)}</span>
      </li>`,
    )}</ul>
    <details>
      <summary>All scores</summary>
      <${DataTable}
        caption="Weighted scores; in brackets what the plugin returned"
        rows=${scores}
        columns=${[
          { heading: "Node", text: (node) => node.node },
          { heading: "Rank", text: (node) => node.rank, isNumber: true },
          { heading: "Total", text: (node) => node.total, isNumber: true },
          ...plugins.map((plugin) => ({
            heading: plugin,
            text: (node) => of(node, plugin)?.weighted ?? 0,
            cell: (node) => {
              const one = of(node, plugin);
              return one ? html`${number(one.weighted)} <span class="dim">(${number(one.raw)})</span>` : "";
            },
            isNumber: true,
          })),
        ]}
      />
    </details>
  </section>`;
}

/** The map's colours as the outcome: the score of nodes that fit; the others have none. */
function outcomeMeasure(report, view) {
  const verdicts = new Map(report.nodes.map((one) => [one.node, one]));
  const scores = new Map(report.scores.map((one) => [one.node, one]));
  const totals = report.scores.map((one) => one.total);
  const [low, high] = totals.length ? [Math.min(...totals), Math.max(...totals)] : [0, 0];
  const of = (row) => [verdicts.get(view.nodes.names[row]), scores.get(view.nodes.names[row])];
  return {
    id: "outcome",
    group: "This decision",
    label: totals.length ? "score for this pod" : "outcome for this pod",
    none: "rejected",
    share: (row) => {
      const [verdict, score] = of(row);
      if (!verdict?.feasible) return null;
      return score && high > low ? 0.1 + (0.9 * (score.total - low)) / (high - low) : 1;
    },
    text: (row) => {
      const [verdict, score] = of(row);
      if (!verdict) return "not looked at";
      return score ? `score ${number(score.total)}, rank ${number(score.rank)}` : verdict.feasible ? "fits" : whyRejected(verdict) || "not tried";
    },
    low: totals.length ? `score ${number(low)}` : "",
    high: totals.length ? number(high) : "fits",
  };
}

/** If no node fits: for how many reasons each rejects the pod, those with the fewest the darkest. */
function distanceMeasure(report, view) {
  const verdicts = new Map(report.nodes.map((one) => [one.node, one]));
  const reasons = ({ rejections }) => sum(rejections.map((answer) => Math.max(1, answer.reasons.length)));
  const most = largest(report.nodes.map(reasons));
  const of = (row) => verdicts.get(view.nodes.names[row]);
  return {
    id: "outcome",
    group: "This decision",
    label: "how near this pod fits",
    none: "not looked at",
    share: (row) => (of(row) && reasons(of(row)) ? 1 - (reasons(of(row)) - 1) / most : null),
    text: (row) => (of(row) ? whyRejected(of(row)) || "not tried" : "not looked at"),
    low: most > 1 ? plural(most, "reason") : "",
    high: "1 reason",
  };
}

function whyRejected({ rejections }) {
  return rejections.map((answer) => `${answer.plugin}: ${answer.detail || answer.reasons.join(", ")}`).join("; ");
}

function Preemption({ found }) {
  if (!found) return null;
  const chosen = found.candidates.find((one) => one.node === found.chosen);
  const text = !found.eligible
    ? `The pod may not preempt others: ${found.reason}.`
    : chosen
      ? `${plural(chosen.victims.length, "pod")} on ${chosen.node} would be evicted${found.decidedBy ? `; it is chosen for its ${found.decidedBy}` : ""}.`
      : "Evicting pods of lower priority makes room nowhere.";
  return html`<section>
    <h2>Preemption</h2>
    <p>${text}</p>
    ${found.candidates.length > 0 &&
    html`<${DataTable}
      caption="Nodes where evictions would help"
      rows=${found.candidates}
      columns=${[
        { heading: "Node", text: (one) => one.node, cell: (one) => (one === chosen ? html`<strong>${one.node}</strong>` : one.node) },
        { heading: "Victims", text: (one) => one.victims.length, isNumber: true },
        { heading: "Highest priority", text: (one) => Math.max(...one.victims.map((victim) => victim.priority)), isNumber: true },
        { heading: "Budgets violated", text: (one) => one.pdbViolations ?? "unknown", isNumber: true },
        { heading: "Pods", text: (one) => one.victims.map((victim) => victim.pod).join(", ") },
      ]}
    />`}
  </section>`;
}

function Nodes({ report }) {
  const ranks = new Map(report.scores.map((score) => [score.node, score]));
  const verdict = (one) => (one.unknown ? "not known" : one.feasible ? "fits" : one.tried ? "rejected" : "not tried");
  return html`<${Listing}
    heading="Every node"
    caption="What the filters and scores say of each node"
    rows=${report.nodes}
    columns=${[
      { heading: "Node", text: (one) => one.node },
      { heading: "Outcome", text: verdict },
      { heading: "Score", text: (one) => ranks.get(one.node)?.total ?? "", isNumber: true },
      { heading: "Rejected by", text: whyRejected },
    ]}
  />`;
}
