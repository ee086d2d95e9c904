// Bars made of parts, and what becomes fuller or emptier.

import { html } from "./dom.js";
import { amount, number, percent, plural } from "./format.js";
import { Bar } from "./tables.js";

/** One bar with a part per name, and a legend; parts have a name, a count and a tone: good, wrong or calm. */
export function Stack({ parts }) {
  const there = parts.filter(([, count]) => count > 0);
  const total = there.reduce((sum, [, count]) => sum + count, 0);
  if (!total) return null;
  return html`<div class="stack">
    <div class="track" aria-hidden="true">${parts.map(
      ([, count, tone]) => count > 0 && html`<span class=${tone} style=${{ width: `${(100 * count) / total}%` }}></span>`,
    )}</div>
    <ul>${parts.map(
      ([name, count, tone]) =>
        count > 0 && html`<li><span class=${`key ${tone}`} aria-hidden="true"></span>${name}: ${number(count)}</li>`,
    )}</ul>
  </div>`;
}

/** Counts per name as bars of one colour; rows are triples of a name, a count and a remark. */
export function Counts({ rows, word = "node" }) {
  const most = Math.max(1, ...rows.map(([, count]) => count));
  return html`<ul class="counts">${rows.map(
    ([name, count, remark]) => html`<li>
      <span class="name">${name}</span>
      <span class="share" aria-hidden="true"><span style=${{ width: `${(100 * count) / most}%` }}></span></span>
      <span class="number">${plural(count, word)}</span>
      ${remark && html`<span class="dim remark">${remark}</span>`}
    </li>`,
  )}</ul>`;
}

/** How full two clusters are, or one before and after, per resource; two lists of uses. */
export function Change({ before, after, names = ["Before", "After"] }) {
  const earlier = new Map(before.map((use) => [use.resource, use]));
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Requested of allocatable"><table class="wordy">
    <caption>Requested of allocatable</caption>
    <thead><tr><th scope="col">Resource</th><th scope="col">${names[0]}</th><th scope="col">${names[1]}</th><th scope="col" class="number">Difference</th></tr></thead>
    <tbody>${after.map((use) => {
      const was = earlier.get(use.resource) ?? use;
      const points = use.share === null || was.share === null ? null : use.share - was.share;
      return html`<tr>
        <th scope="row">${use.resource}</th>
        <td data-heading=${names[0]}><${Bar} share=${was.share} text=${of(was)} /></td>
        <td data-heading=${names[1]}><${Bar} share=${use.share} text=${of(use)} /></td>
        <td class="number" data-heading="Difference">${points === null ? "" : signed(points * 100)}</td>
      </tr>`;
    })}</tbody>
  </table></div>`;
}

function of(use) {
  return `${amount(use.resource, use.requested)} of ${amount(use.resource, use.allocatable)}`;
}

/** A difference with its sign, in percentage points. */
function signed(points) {
  return Math.abs(points) < 0.005 ? "±0" : `${points > 0 ? "+" : "−"}${number(Math.abs(points))} pp`;
}
