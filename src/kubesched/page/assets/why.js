// Why a pod is pending: the answer, changes that would help, and why nodes reject it.

import { html } from "./dom.js";
import { number, plural } from "./format.js";
import { Notes } from "./tables.js";

export function WhyPage({ report }) {
  const { lastAttempt, nearMisses, records, queue } = report;
  return html`<${Notes} report=${report} />
    <${Changes} report=${report} />
    ${nearMisses.length > 0 && html`<section><h2>Nearly right</h2><ul>${nearMisses.map((text) => html`<li>${text}</li>`)}</ul></section>`}
    ${report.causes.length > 0 && html`<section><h2>Why not, the nearest misses first</h2><${Causes} causes=${report.causes} /></section>`}
    ${lastAttempt && html`<section><h2>Last attempt</h2><p class="dim">${lastAttempt.time}</p><p>${lastAttempt.message}</p></section>`}
    ${queue && html`<section><h2>In the queue</h2><p>${queue.part}, tried ${plural(queue.attempts, "time")}</p></section>`}
    ${records.length > 0 && html`<section><h2>Last decisions</h2><ul>${records.map((record) => html`<li>${record.time} ${record.outcome} ${record.node}</li>`)}</ul></section>`}`;
}

export function Changes({ report }) {
  const { changes, together } = report;
  if (!changes.length && !together.length) return null;
  const shown = changes.length ? changes : together;
  return html`<section>
    <h2>${changes.length ? "Any one of these makes it fit, the smallest first" : "These together make it fit"}</h2>
    <ol class="changes">${shown.map(
      (change, at) => html`<li>${change.sentence}${change.node && (changes.length || at === together.length - 1) && html`<span class="dim"> Then it goes to ${change.node}.</span>`}</li>`,
    )}</ol>
  </section>`;
}

/** Groups of nodes with the plugins that reject the pod there; bars are shares of the nodes. */
export function Causes({ causes }) {
  const most = Math.max(1, ...causes.map((cause) => cause.count));
  return html`<ul class="causes">${causes.map(
    (cause) => html`<li>
      <strong>${plural(cause.count, "node")}</strong> ${cause.plugins.map((plugin, at) => cause.reasons[at] || plugin).join("; ")}
      <span class="share" aria-hidden="true"><span style=${{ width: `${(100 * cause.count) / most}%` }}></span></span>
      ${cause.examples.map(
        (example) => html`<p class="dim">${example.nodes.slice(0, 3).join(", ")}${example.nodes.length > 3 ? ` and ${number(example.nodes.length - 3)} more` : ""}${example.details.length ? `: ${example.details.join("; ")}` : ""}</p>`,
      )}
    </li>`,
  )}</ul>`;
}
