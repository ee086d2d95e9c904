// Tables that sort, filter and show long lists in parts; bars of shares and of parts.

import { html, useMemo, useState } from "./dom.js";
import { amount, grouped, number, percent, plural } from "./format.js";

const PART = 20;
const LONG = 44;

/** A share as a bar, with its number unless it is bare, and the amounts that it is made of if they are given. */
export function Bar({ share, text = "", bare = false }) {
  if (share === null || share === undefined) return html`<span class="dim">none</span>`;
  const width = `${Math.min(100, Math.max(0, share * 100))}%`;
  return html`<span class="bar">
    <span class="track" aria-hidden="true"
      ><span class=${share > 0.9 && !bare ? "fill full" : "fill"} style=${{ width }}></span></span
    >${!bare && html`<span>${percent(share)}</span>`}${text && html`<span class="dim amounts">${text}</span>`}
  </span>`;
}

/** Requests of a resource: a record with requested, allocatable and share. */
function Use({ use }) {
  const text = `${amount(use.resource, use.requested)} of ${amount(use.resource, use.allocatable)}`;
  return html`<${Bar} share=${use.share} text=${text} />`;
}

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
        <td data-heading=${names[0]}><${Use} use=${was} /></td>
        <td data-heading=${names[1]}><${Use} use=${use} /></td>
        <td class="number" data-heading="Difference">${points === null ? "" : signed(points * 100)}</td>
      </tr>`;
    })}</tbody>
  </table></div>`;
}

/** A difference with its sign, in percentage points. */
function signed(points) {
  return Math.abs(points) < 0.005 ? "±0" : `${points > 0 ? "+" : "−"}${number(Math.abs(points))} pp`;
}

/**
 * A table; a caption that only repeats the heading above it is a `label`, which is not shown.
 *
 * columns: each with a heading, and with `text`, a function of a row for sorting and filtering;
 * `cell`, what is shown instead of the text; `isNumber`, to align to the right.
 */
export function DataTable({ caption = "", label = caption, columns, rows, part = PART, filter = rows.length > 10 }) {
  const [order, setOrder] = useState({ at: -1, falling: false });
  const [wanted, setWanted] = useState("");
  const [shown, setShown] = useState(part);
  const found = useMemo(() => {
    const words = wanted.toLowerCase().split(" ").filter(Boolean);
    const kept = rows.filter((row) => {
      if (!words.length) return true;
      const text = columns.map((column) => column.text(row)).join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    if (order.at < 0) return kept;
    const { text } = columns[order.at];
    const sign = order.falling ? -1 : 1;
    return [...kept].sort((one, other) => sign * compare(text(one), text(other)));
  }, [rows, wanted, order]);
  const isLong = (row, { cell, isNumber, text }) => !cell && !isNumber && String(text(row)).length > LONG;
  const page = found.slice(0, shown);
  const sort = (at) => setOrder({ at, falling: order.at === at ? !order.falling : columns[at].isNumber });
  return html`<div class="listing">
    ${filter &&
    html`<label class="filter"
      >Filter <input type="search" value=${wanted} onInput=${(event) => setWanted(event.target.value)}
    /></label>`}
    <div class="scroll" tabindex="0" role="region" aria-label=${label}>
      <table class=${page.some((row) => columns.some((column) => isLong(row, column))) ? "wordy" : ""}>
        <caption>${caption}<span class="dim"> ${plural(found.length, "row")}</span></caption>
        <thead><tr>${columns.map(
          (column, at) => html`<th
            scope="col"
            class=${column.isNumber ? "number" : ""}
            aria-sort=${order.at === at ? (order.falling ? "descending" : "ascending") : "none"}
            ><button type="button" onClick=${() => sort(at)}>${column.heading}</button></th
          >`,
        )}</tr></thead>
        <tbody>${page.map(
          (row) => html`<tr>${columns.map((column, at) => {
            const content = column.cell ? column.cell(row) : shownText(column.text(row));
            const name = column.isNumber ? "number" : isLong(row, column) ? "long" : "";
            return at ? html`<td class=${name} data-heading=${column.heading}>${content}</td>` : html`<th scope="row" class=${name}>${content === "" ? "–" : content}</th>`;
          })}</tr>`,
        )}</tbody>
      </table>
    </div>
    ${found.length > shown &&
    html`<button type="button" onClick=${() => setShown(shown + 4 * part)}>
      Show more of ${number(found.length)}
    </button>`}
  </div>`;
}

/** A table below a heading; nothing without rows. */
export function Listing({ heading, caption = "", columns, rows }) {
  if (!rows.length) return null;
  return html`<section>
    <h2>${heading}</h2>
    <${DataTable} caption=${caption} label=${caption || heading} columns=${columns} rows=${rows} />
  </section>`;
}

function shownText(value) {
  return typeof value === "number" ? number(value) : value;
}

function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one ?? "").localeCompare(String(other ?? ""), "en", { numeric: true });
}

/** Notes and what is not known, which most documents have. */
export function Notes({ report }) {
  const { notes = [], unknown = [] } = report;
  return html`${notes.map((note) => html`<p class="note">Note: ${note}</p>`)}
  ${[...grouped(unknown, (one) => one.why)].map(
    ([why, found]) => html`<p class="note">
      Not known, because the input has none: ${found.map((one) => one.kind).join(", ")} (${why}). To know, also read what ${found.map((one, at) => html`${at ? " and " : ""}<code>${one.command}</code>`)} ${found.length > 1 ? "print" : "prints"}.
    </p>`,
  )}`;
}
