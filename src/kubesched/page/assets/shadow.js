// How another scheduler's decisions compare: how many agree, then each difference with its reason.

import { html } from "./dom.js";
import { Stack } from "./bars.js";
import { duration, number, percent, plural } from "./format.js";
import { DataTable, Notes } from "./tables.js";

export function shadowSentence({ schedulerName, judged, agreed, different, seconds }) {
  if (!judged) return `${schedulerName} decided nothing in ${duration(seconds)}.`;
  return `${number(agreed)} of ${plural(judged, "decision")} of ${schedulerName} are kubesched's too (${percent(agreed / judged)}); ${number(different)} cannot be explained by ties, time or sampling.`;
}

export function ShadowPage({ report }) {
  return html`<${Notes} report=${report} />
    <section>
      <h2>Decisions in ${duration(report.seconds)}, on ${plural(report.nodes, "node")}</h2>
      <${Stack} parts=${[
        ["the same", report.agreed, "good"],
        ["another node with the same score", report.ties, "s6"],
        ["the same shortly before or after", report.changed, "s0"],
        ["a node with a lower score, in a large cluster", report.sampled, "s4"],
        ["different", report.different, "wrong"],
      ]} />
      <p class="dim">${plural(report.pending, "pod waits", "pods wait")} at the end; ${number(report.skipped)} of pod groups were not judged.</p>
    </section>
    ${report.disagreements.length > 0 &&
    html`<section>
      <h2>Decisions that differ</h2>
      <${DataTable}
        caption="Each with its reason"
        rows=${report.disagreements}
        columns=${[
          { heading: "Pod", text: (one) => one.pod },
          { heading: "Verdict", text: (one) => one.verdict },
          { heading: "Theirs", text: (one) => one.theirNode || "pending" },
          { heading: "Ours", text: (one) => one.ourNode || "pending" },
          { heading: "Why", text: (one) => one.sentence },
          { heading: "Scores that differ", text: (one) => one.scores.map(({ plugin, theirs, ours }) => `${plugin} ${number(theirs)} against ${number(ours)}`).join(", ") },
        ]}
      />
    </section>`}`;
}
