// Why pods are pending: the answer about one, changes that would help, and pending pods by cause.

import { html } from "./dom.js";
import { plural, some } from "./format.js";
import { Notes } from "./tables.js";

export function WhyPage({ report }) {
  const { lastAttempt, nearMisses, records, queue } = report;
  return html`<${Notes} report=${report} />
    <${Changes} report=${report} />
    ${nearMisses.length > 0 && html`<section><h2>Nearly right</h2><ul>${nearMisses.map((text) => html`<li>${text}</li>`)}</ul></section>`}
    ${report.causes.length > 0 && html`<section><h2>Why not, the nearest misses first</h2><${Causes} causes=${report.causes} /></section>`}
    ${lastAttempt && html`<section><h2>Last attempt</h2>${lastAttempt.time && html`<p class="dim">not scheduled since ${lastAttempt.time}</p>`}<p>${lastAttempt.message}</p></section>`}
    ${queue && html`<section><h2>In the queue</h2><p>${queue.part}, tried ${plural(queue.attempts, "time")}</p></section>`}
    ${records.length > 0 && html`<section><h2>Last decisions</h2><ul>${records.map((record) => html`<li>${record.time} ${record.outcome} ${record.node}</li>`)}</ul></section>`}`;
}

function Changes({ report }) {
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
function Causes({ causes }) {
  const most = Math.max(1, ...causes.map((cause) => cause.count));
  return html`<ul class="causes">${causes.map(
    (cause) => html`<li>
      <strong>${plural(cause.count, "node")}</strong> ${cause.plugins.map((plugin, at) => cause.reasons[at] || plugin).join("; ")}
      <span class="share" aria-hidden="true"><span style=${{ width: `${(100 * cause.count) / most}%` }}></span></span>
      ${cause.examples.map(
        (example) => html`<p class="dim">${some(example.nodes)}${example.details.length ? `: ${example.details.join("; ")}` : ""}</p>`,
      )}
    </li>`,
  )}</ul>`;
}

// Pending pods by cause, each group with its explanation and the first suggested change.

/** The groups; those of a `past` moment cannot be asked about any more. */
export function PendingGroups({ groups, past = false }) {
  return html`<section aria-labelledby="pending-heading">
    <h2 id="pending-heading">Pending pods by cause</h2>
    <ol class="cards">${groups.map((group) => html`<${Group} group=${group} past=${past} />`)}</ol>
  </section>`;
}

function Group({ group, past }) {
  const { why } = group;
  const title = group.fits ? "fit now, and wait for the scheduler" : group.reasons.join("; ");
  const first = why?.changes[0];
  return html`<li class="card">
    <h3><span class="count">${plural(group.count, "pod")}</span> ${title}</h3>
    ${why && html`<p>${why.sentence}</p>`}
    ${first && html`<p class="change"><strong>Would help:</strong> ${first.sentence}${first.node && html`<span class="dim">; then it goes to ${first.node}</span>`}</p>`}
    ${why && !first && why.together.length > 0 && html`<${Changes} report=${why} />`}
    <p class="dim">${group.workloads.slice(0, 4).join("; ")}${group.workloads.length > 4 ? "; …" : ""}</p>
    <details>
      <summary>${past ? "Pods" : "Pods, nodes and other changes"}</summary>
      ${why && html`<${Causes} causes=${why.causes} />`}
      ${why && why.changes.length > 1 && html`<${Changes} report=${why} />`}
      <p>${group.pods.join(", ")}${group.count > group.pods.length ? `, and ${plural(group.count - group.pods.length, "more", "more")}` : ""}</p>
      ${!past && html`<p>Every node and every score: <code>kubesched explain ${why?.pod ?? group.pods[0]} --html explanation.html</code></p>`}
    </details>
  </li>`;
}
