// The view of a cluster: the map, what a node holds, pending pods by cause, and the same as tables.

import { html, useMemo, useState } from "./dom.js";
import { amount, grouped, number, percent, plural, requests, sum } from "./format.js";
import { ClusterMap, Legend } from "./map.js";
import { measuresOf, podsOf } from "./measures.js";
import { Bar, DataTable } from "./tables.js";
import { PendingGroups } from "./why.js";

export function ClusterPage({ report: view }) {
  return html`<${MapSection} view=${view} />
    ${view.pendingPods > 0 && html`<${PendingGroups} groups=${view.pending} />`}
    <${Tables} view=${view} />`;
}

/** The answer in one sentence: how full, what is free, what waits. */
export function clusterSentence(view) {
  const shares = view.resources.slice(0, 2).map((name, at) => {
    const share = sum(view.nodes.requested[at]) / sum(view.nodes.allocatable[at]);
    return Number.isFinite(share) ? `${percent(share)} of ${name}` : "";
  });
  const zones = view.zones.filter(Boolean).length;
  const where = zones > 1 ? ` in ${zones} zones` : "";
  const used = shares.filter(Boolean).join(" and ");
  const free = view.resources.flatMap((name, at) => {
    const given = sum(view.nodes.allocatable[at]);
    return name.includes("/") && given ? [`${number(given - sum(view.nodes.requested[at]))} of ${number(given)} ${name} are free`] : [];
  });
  const causes = view.pending.filter((group) => !group.fits).length;
  const fitting = sum(view.pending.filter((group) => group.fits).map((group) => group.count));
  const detail = fitting ? `; ${number(fitting)} of them ${fitting === 1 ? "fits" : "fit"} now` : causes ? ` for ${plural(causes, "reason")}` : "";
  const waits = view.pendingPods ? `${plural(view.pendingPods, "pod is", "pods are")} pending${detail}.` : "No pod is pending.";
  return [`Pods request ${used || "nothing"} on ${plural(view.nodes.names.length, "node")}${where}.`, ...free.map((text) => `${text}.`), waits].join(" ");
}

/** The map with its controls and the selected node; `own` are measures before the usual ones. */
export function MapSection({ view, own = [] }) {
  const measures = useMemo(() => [...own, ...measuresOf(view)], [view, own]);
  const [chosen, setChosen] = useState(measures[0].id);
  const [wanted, setWanted] = useState("");
  const [selected, setSelected] = useState("");
  const measure = measures.find((one) => one.id === chosen) ?? measures[0];
  const faded = useMemo(() => fadedRows(view, wanted), [view, wanted]);
  const row = selected ? view.nodes.names.indexOf(selected) : -1;
  const groups = [...new Set(measures.map((one) => one.group))];
  const left = faded ? faded.filter((one) => !one).length : 0;
  return html`<section aria-labelledby="map-heading">
    <h2 id="map-heading">Nodes</h2>
    <div class="controls">
      <label>Colour by <select value=${chosen} onChange=${(event) => setChosen(event.target.value)}>
        ${groups.map(
          (group) => html`<optgroup label=${group}>${measures
            .filter((one) => one.group === group)
            .map((one) => html`<option value=${one.id}>${one.label}</option>`)}</optgroup>`,
        )}
      </select></label>
      <label>Find <input type="search" placeholder="node, pool or workload" value=${wanted}
        onInput=${(event) => setWanted(event.target.value)} /></label>
      <span role="status">${faded ? plural(left, "node") : ""}</span>
    </div>
    <${Legend} view=${view} measure=${measure} />
    <div class=${row >= 0 ? "beside" : ""}>
      <${ClusterMap}
        view=${view}
        measure=${measure}
        faded=${faded}
        selected=${row}
        onSelect=${(at) => setSelected(at < 0 ? "" : view.nodes.names[at])}
        tip=${(at) => `${view.nodes.names[at]}: ${measure.text(at)}${state(view, at)}`}
      />
      ${row >= 0 && html`<${NodeDetails} view=${view} row=${row} text=${measure.text(row)} onClose=${() => setSelected("")} />`}
    </div>
  </section>`;
}

function state(view, row) {
  const words = [view.nodes.ready[row] ? "" : "not ready", view.nodes.cordoned[row] ? "cordoned" : ""];
  const found = words.filter(Boolean).join(", ");
  return found && `, ${found}`;
}

/** Whether each node is neither named by the text nor has such a pool, zone or workload. */
function fadedRows(view, wanted) {
  const text = wanted.trim().toLowerCase();
  if (!text) return null;
  const has = (value) => value.toLowerCase().includes(text);
  const workloads = new Set(view.workloads.flatMap((one, at) => (has(nameOf(one)) ? [at] : [])));
  const [zones, pools] = [view.zones.map(has), view.pools.map(has)];
  return view.nodes.names.map(
    (name, row) =>
      !(has(name) || zones[view.nodes.zones[row]] || pools[view.nodes.pools[row]]) &&
      !podsOf(view.nodes.pods[row]).some(([at]) => workloads.has(at)),
  );
}

function nameOf(workload) {
  return `${workload.kind} ${workload.namespace}/${workload.name}`;
}

function NodeDetails({ view, row, text, onClose }) {
  const { names, zones, pools, allocatable, requested } = view.nodes;
  const place = [view.zones[zones[row]], view.pools[pools[row]]].filter(Boolean).join(", ");
  const pods = podsOf(view.nodes.pods[row]).map(([at, count]) => ({ ...view.workloads[at], count }));
  pods.sort((one, other) => other.priority - one.priority || other.count - one.count);
  return html`<aside class="details" aria-label=${`Node ${names[row]}`}>
    <h3>${names[row]}</h3>
    <button type="button" class="close" aria-label="Close" onClick=${onClose}>×</button>
    <p class="dim">${place}${state(view, row)}</p>
    <p>${text}</p>
    <dl>${view.resources.map((name, at) =>
      allocatable[at][row] || requested[at][row]
        ? html`<dt>${name}</dt><dd><${Bar}
            share=${allocatable[at][row] ? requested[at][row] / allocatable[at][row] : null}
            text=${`${amount(name, requested[at][row])} of ${amount(name, allocatable[at][row])}`}
          /></dd>`
        : "",
    )}</dl>
    <${DataTable}
      caption="Pods"
      rows=${pods}
      columns=${[
        { heading: "Workload", text: nameOf },
        { heading: "Pods", text: (pod) => pod.count, isNumber: true },
        { heading: "Priority", text: (pod) => pod.priority, isNumber: true, cell: (pod) => pod.priorityClass || number(pod.priority) },
        { heading: "One requests", text: (pod) => requests(pod.requests) },
      ]}
    />
  </aside>`;
}

/** The text alternative of the map: zones and pools, then every node. */
function Tables({ view }) {
  const { names, zones, pools } = view.nodes;
  const groups = useMemo(() => {
    const places = grouped(names.keys(), (row) => `${zones[row]} ${pools[row]}`);
    return [...places.values()].map((rows) => ({ zone: view.zones[zones[rows[0]]], pool: view.pools[pools[rows[0]]], rows }));
  }, [view]);
  const resources = view.resources.flatMap((name, at) => (sum(view.nodes.allocatable[at]) ? [{ name, at }] : []));
  const share = (at, rows) => {
    const given = sum(rows.map((row) => view.nodes.allocatable[at][row]));
    return given ? sum(rows.map((row) => view.nodes.requested[at][row])) / given : null;
  };
  const shares = (rowsOf) =>
    resources.map(({ name, at }) => ({
      heading: name,
      text: (one) => share(at, rowsOf(one)) ?? -1,
      cell: (one) => html`<${Bar} share=${share(at, rowsOf(one))} />`,
    }));
  const flags = (row) => state(view, row).slice(2);
  return html`<section aria-labelledby="pools-heading">
    <h2 id="pools-heading">Zones and pools</h2>
    <${DataTable}
      caption="What pods request of what the nodes of each zone and pool can give"
      rows=${groups}
      columns=${[
        { heading: "Zone", text: (group) => group.zone || "none" },
        { heading: "Pool", text: (group) => group.pool || "none" },
        { heading: "Nodes", text: (group) => group.rows.length, isNumber: true },
        { heading: "Cordoned", text: (group) => group.rows.filter((row) => view.nodes.cordoned[row]).length, isNumber: true },
        ...shares((group) => group.rows),
      ]}
    />
    <details>
      <summary>All nodes as a table</summary>
      <${DataTable}
        caption="What pods request of what each node can give"
        rows=${names.map((name, row) => ({ name, row }))}
        columns=${[
          { heading: "Node", text: (node) => node.name },
          { heading: "Zone", text: (node) => view.zones[zones[node.row]] },
          { heading: "Pool", text: (node) => view.pools[pools[node.row]] },
          { heading: "State", text: (node) => flags(node.row) },
          ...shares((node) => [node.row]),
        ]}
      />
    </details>
  </section>`;
}
