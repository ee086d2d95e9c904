// Pending pods by cause, each group with its explanation and the first suggested change.

import { html } from "./dom.js";
import { plural } from "./format.js";
import { Causes, Changes } from "./why.js";

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
      ${!past && html`<p>Every node and every score: <code>kubesched explain ${group.pods[0]} --html explanation.html</code></p>`}
    </details>
  </li>`;
}
