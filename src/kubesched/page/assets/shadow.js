// How decisions compare with another scheduler's or with recorded ones: how many are the same, then each difference with its reason.

import { html } from "./dom.js";
import { duration, number, plural } from "./format.js";
import { Listing, Notes, Stack } from "./tables.js";

export function shadowSentence({ schedulerName, judged, different, seconds }) {
  if (!judged) return `${schedulerName} decided nothing in ${duration(seconds)}.`;
  const decisions = `${plural(judged, "decision")} of ${schedulerName}`;
  if (!different) return `${decisions}: all as kubesched's.`;
  return `${decisions}: all but ${number(different)} as kubesched's.`;
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
      <p class="dim">${plural(report.pending, "pod waits", "pods wait")} at the end.</p>
      <${Skipped} report=${report} />
    </section>
    <${Disagreements} rows=${report.disagreements} theirs="Theirs" ours="Ours" />`;
}

export function replaySentence({ schedulerNames, judged, different, seconds }) {
  const who = schedulerNames.join(", ");
  if (!judged) return `${who} decided nothing in ${duration(seconds)}.`;
  return `${different ? number(different) : "None"} of ${plural(judged, "decision")} of ${who} would differ now.`;
}

export function ReplayPage({ report }) {
  return html`${report.partial && html`<p class="note">Interrupted: the rest of the recording was not replayed.</p>`}
    <${Notes} report=${report} />
    <section>
      <h2>Decisions in ${duration(report.seconds)}, on ${plural(report.nodes, "node")}</h2>
      <${Stack} parts=${[
        ["the same", report.same, "good"],
        ["another node with the same score", report.ties, "s6"],
        ["the same shortly before or after", report.changed, "s0"],
        ["a choice among the nodes that were looked at", report.sampled, "s4"],
        ["another node, or other reasons", report.different - report.noLongerPlaced - report.nowPlaced, "s1"],
        ["a node now, none then", report.nowPlaced, "calm"],
        ["no node any more", report.noLongerPlaced, "wrong"],
      ]} />
      <${Skipped} report=${report} />
    </section>
    <${Disagreements} rows=${report.disagreements} theirs="Then" ours="Now" />`;
}

function Skipped({ report }) {
  return report.skipped > 0 && html`<p class="dim">${plural(report.skipped, "pod")} of pod groups not judged.</p>`;
}

// What nothing explains comes first; which of equal nodes is drawn is chance.
const VERDICTS = ["Different", "Sampled", "Changed", "Tie"];

/** Decisions that differ; `theirs` and `ours` head the columns of the nodes. */
function Disagreements({ rows, theirs, ours }) {
  const sorted = [...rows].sort((one, other) => VERDICTS.indexOf(one.verdict) - VERDICTS.indexOf(other.verdict));
  return html`<${Listing}
    heading="Decisions that differ"
    caption="Each with its reason"
    rows=${sorted}
    columns=${[
      { heading: "Pod", text: (one) => one.pod },
      { heading: "Verdict", text: (one) => one.verdict },
      { heading: theirs, text: (one) => one.theirNode || "pending" },
      { heading: ours, text: (one) => one.ourNode || "pending" },
      { heading: "Why", text: (one) => one.sentence },
    ]}
  />`;
}
