// Any document: its sentence, its single values, then a table per list of records.

import { html } from "./dom.js";
import { words } from "./format.js";
import { DataTable, Notes } from "./tables.js";

const APART = ["apiVersion", "kind", "sentence", "notes", "unknown"];

export function OtherPage({ report }) {
  const fields = Object.entries(report).filter(([name, value]) => !APART.includes(name) && isThere(value));
  const single = fields.filter(([, value]) => !isRecords(value));
  const lists = fields.filter(([, value]) => isRecords(value));
  return html`<${Notes} report=${report} />
    ${lists.map(([name, value]) => html`<${Records} name=${name} records=${value} />`)}
    ${single.length > 0 &&
    html`<section><h2>Totals</h2><dl class="facts">${single.map(
      ([name, value]) => html`<dt>${words(name)}</dt><dd>${plain(value)}</dd>`,
    )}</dl></section>`}`;
}

/** A list of records as a section with a table; a column per field. */
export function Records({ name, records, heading = name }) {
  if (!records.length) return null;
  const names = [...new Set(records.flatMap((record) => Object.keys(record)))];
  const there = names.filter((field) => records.some((record) => isThere(record[field])));
  return html`<section>
    <h2>${titled(heading)}</h2>
    <${DataTable}
      label=${titled(heading)}
      rows=${records}
      columns=${there.map((field) => ({
        heading: titled(field),
        text: (record) => (typeof record[field] === "number" ? record[field] : plain(record[field])),
        isNumber: records.every((record) => typeof (record[field] ?? 0) === "number"),
      }))}
    />
  </section>`;
}

function titled(name) {
  const text = words(name);
  return text[0].toUpperCase() + text.slice(1);
}

function isRecords(value) {
  return Array.isArray(value) && value.length > 0 && value.every((one) => one && typeof one === "object" && !Array.isArray(one));
}

function isThere(value) {
  return value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && !value.length);
}

/** A value as text; lists with commas, records as "name value". */
function plain(value) {
  if (value === null || value === undefined) return "";
  if (value === true) return "yes";
  if (value === false) return "no";
  if (Array.isArray(value)) return value.map(plain).join(", ");
  if (typeof value === "object") return Object.entries(value).map(([name, one]) => `${words(name)} ${plain(one)}`).join(", ");
  return String(value);
}
