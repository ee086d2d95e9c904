// Comparisons, the difference first: of simulations over time, and of clusters.

import { html, useMemo } from "./dom.js";
import { duration, number, percent, podsThat, words } from "./format.js";
import { Records } from "./other.js";
import { Change, Counts, DataTable } from "./tables.js";
import { Charts, withUnit } from "./timechart.js";

const SHOWN = { share: percent, seconds: duration, pods: number, podHours: number };
const CHARTS = ["Pods", "Utilisation", "Fragmentation", "Disruptions"];
const MOST = 6;

// Of simulations over time.

export function comparisonSentence(report) {
  const [first] = differencesOf(report);
  const runs = report.runs.join(" and ");
  const what = new Set(report.decisionDigests).size === 1 ? "decide the same" : first ? `differ most in ${first.name}: ${first.texts.join(" against ")}` : "have the same figures";
  return `${runs} ${what}.`;
}

/** The figures that differ between runs, the largest relative difference first. */
function differencesOf(report) {
  return report.measures
    .map(({ name, unit, values }) => {
      const known = values.filter((value) => value !== null);
      const [low, high] = [Math.min(...known), Math.max(...known)];
      const texts = values.map((value) => (value === null ? "–" : SHOWN[unit](value)));
      return { name, unit, values, texts, size: known.length < 2 || !high ? 0 : (high - low) / Math.abs(high) };
    })
    .filter(({ size, texts }) => size > 0 && new Set(texts).size > 1)
    .sort((one, other) => other.size - one.size);
}

/** The difference of a run from the first one: in points of percentage for shares, else relative. */
function differenceOf(unit, first, value) {
  if (first === null || value === null || SHOWN[unit](first) === SHOWN[unit](value)) return "";
  const sign = value > first ? "+" : "−";
  if (unit === "share") return `${sign}${number(Math.abs(value - first) * 100)} pp`;
  return first ? `${sign}${number(Math.abs(value / first - 1) * 100)} %` : `${sign}${SHOWN[unit](Math.abs(value))}`;
}

export function ComparisonPage({ report, documents }) {
  const reports = documents.filter((one) => one.kind === "TimelineReport");
  const charts = useMemo(() => commonCharts(report.runs, reports), [documents]);
  return html`<section>
      <h2>What differs most</h2>
      <${Measures} report=${report} rows=${differencesOf(report).slice(0, MOST)} caption="The largest relative differences" />
    </section>
    <${Charts} charts=${charts} />
    <section>
      <h2>Side by side</h2>
      <${Measures} report=${report} rows=${report.measures} caption=${`Seed ${report.seed}, ${duration(report.durationSeconds)} simulated`} />
    </section>`;
}

/** A chart per series, with a line per run. */
function commonCharts(names, reports) {
  const found = new Map();
  reports.forEach((report, at) => {
    for (const { name, chart, unit, values } of report.series) {
      if (!CHARTS.includes(chart)) continue;
      const title = withUnit(`${chart}: ${name}`, { chart, unit });
      if (!found.has(title)) found.set(title, { title, unit, chart, runs: [] });
      found.get(title).runs[at] = values;
    }
  });
  const isQuiet = ({ chart, runs }) => chart === "Disruptions" && !runs.some((values) => values?.peaks.some(Boolean));
  return [...found.values()].filter((chart) => !isQuiet(chart)).map(({ title, unit, runs }) => {
    // Runs may have bins of different widths; all are read in the middles of the finest ones.
    const known = runs.filter(Boolean);
    const width = Math.min(...known.map((values) => values.widthSeconds));
    const end = Math.max(...known.map((values) => values.means.length * values.widthSeconds));
    const times = Array.from({ length: Math.ceil(end / width) }, (_, at) => (at + 0.5) * width);
    const valueAt = ({ means, widthSeconds }, time) => means[Math.min(means.length - 1, Math.floor(time / widthSeconds))];
    const lines = names.map((name, at) => ({ name, values: times.map((time) => (runs[at] ? valueAt(runs[at], time) : 0)) }));
    return { title, unit, times, span: [0, end], lines };
  });
}

function Measures({ report, rows, caption }) {
  const others = report.runs.slice(1);
  const text = (row, at) => (row.values[at] === null ? "–" : SHOWN[row.unit](row.values[at]));
  return html`<${DataTable}
    caption=${caption}
    filter=${false}
    rows=${rows}
    columns=${[
      { heading: "What", text: (row) => row.name },
      ...report.runs.map((run, at) => ({ heading: run, text: (row) => row.values[at] ?? -1, cell: (row) => text(row, at), isNumber: true })),
      ...others.map((run, at) => ({
        heading: others.length > 1 ? `${run} − ${report.runs[0]}` : "Difference",
        text: (row) => differenceOf(row.unit, row.values[0], row.values[at + 1]),
        isNumber: true,
      })),
    ]}
  />`;
}

// Of clusters.

const LISTS = [
  ["elsewhere", "lands elsewhere", "land elsewhere"],
  ["noLongerFit", "no longer fits", "no longer fit"],
  ["newlyFit", "newly fits", "newly fit"],
  ["podsGone", "is gone", "are gone"],
  ["podsNew", "is new", "are new"],
];

export function clustersSentence(report) {
  const first = report.clusters[0].name;
  return report.differences
    .map((difference) => {
      const found = podsThat(LISTS.map(([field, one, more]) => [difference[field].length, one, more]));
      return found
        ? `${difference.cluster}, compared with ${first}: ${found}.`
        : `${difference.cluster}: every pod ends as in ${first}.`;
    })
    .join(" ");
}

export function ClustersPage({ report }) {
  return html`${report.differences.map(
      (difference) => html`<section>
        <h2>${difference.cluster}, compared with ${report.clusters[0].name}</h2>
        <${Counts} word="pod" rows=${LISTS.map(([field, , text]) => [text, difference[field].length, ""]).filter(([, count]) => count)} />
        ${Object.entries(difference)
          .filter(([, value]) => Array.isArray(value) && value.length && typeof value[0] === "object")
          .map(([name, records]) => html`<${Records} name=${name} records=${records} />`)}
        ${Object.entries(difference)
          .filter(([, value]) => Array.isArray(value) && value.length && typeof value[0] === "string")
          .map(([name, values]) => html`<details><summary>${words(name)}: ${number(values.length)}</summary><p>${values.join(", ")}</p></details>`)}
      </section>`,
    )}
    <${ClusterTotals} clusters=${report.clusters} />`;
}

/** Figures of every cluster; the first resources are compared as bars, one cluster after the other. */
function ClusterTotals({ clusters }) {
  const counts = Object.entries(clusters[0].summary).filter(([, value]) => typeof value === "number");
  const rows = counts.map(([name]) => ({ name: words(name), values: clusters.map(({ summary }) => number(summary[name])) }));
  for (const name of Object.keys(clusters[0].fragmentation)) {
    rows.push({ name: `${name} fragmented`, values: clusters.map((one) => percent(one.fragmentation[name])) });
  }
  const uses = ({ summary }) => summary.resources.map((use) => ({ ...use, requested: use.requestedAfter, share: use.shareAfter }));
  const [first, ...others] = clusters;
  return html`<section>
    <h2>Totals, after the pending pods were placed</h2>
    ${others.map((other) => html`<${Change} before=${uses(first)} after=${uses(other)} names=${[first.name, other.name]} />`)}
    <${DataTable}
      caption="Counts and shares"
      filter=${false}
      rows=${rows}
      columns=${[
        { heading: "What", text: (row) => row.name },
        ...clusters.map((cluster, at) => ({ heading: cluster.name, text: (row) => row.values[at], isNumber: true })),
      ]}
    />
  </section>`;
}
