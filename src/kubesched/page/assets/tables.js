// Tables that sort, filter and show long lists in parts; bars of shares.

import { html, useMemo, useState } from "./dom.js";
import { amount, number, percent, plural } from "./format.js";

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
export function useBar(use) {
  const of = `${amount(use.resource, use.requested)} of ${amount(use.resource, use.allocatable)}`;
  return html`<${Bar} share=${use.share} text=${of} />`;
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
  const reasons = [...new Set(unknown.map((one) => one.why))];
  return html`${notes.map((note) => html`<p class="note">Note: ${note}</p>`)}
  ${reasons.map((why) => {
    const found = unknown.filter((one) => one.why === why);
    return html`<p class="note">
      Not known, because the input has none: ${found.map((one) => one.kind).join(", ")} (${why}). To know, also read what ${found.map((one, at) => html`${at ? " and " : ""}<code>${one.command}</code>`)} ${found.length > 1 ? "print" : "prints"}.
    </p>`;
  })}`;
}
