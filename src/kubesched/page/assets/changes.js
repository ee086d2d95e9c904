// Answers about changes: do workloads fit, what a drain, a plan, an upgrade or a removal does.

import { html } from "./dom.js";
import { amount, grouped, largest, number, plural, podsThat, some, sum } from "./format.js";
import { Records } from "./other.js";
import { Bar, Change, DataTable, Listing, Notes, Stack } from "./tables.js";

// Fit.

export function fitSentence({ fits, workloads, nodes, more }) {
  const missing = sum(workloads.map((one) => one.wanted - one.placed));
  const room = more ? ` ${more.atLeast ? "At least " : ""}${plural(more.count, "more pod fits", "more pods fit")}.` : "";
  const what = fits ? "Everything fits" : `${plural(missing, "pod has", "pods have")} no place`;
  return `${what} in a cluster of ${plural(nodes, "node")}.${room}`;
}

export function FitPage({ report }) {
  const { workloads, more, missingNodes } = report;
  return html`<${Notes} report=${report} />
    <section>
      <h2>Workloads</h2>
      ${workloads.map(
        (one) => html`<h3>${one.kind} ${one.namespace}/${one.name}</h3>
          <${Stack} parts=${[
            ["there already", one.existing, "calm"],
            ["find a node", one.placed - one.existing, "good"],
            ["find none", one.wanted - one.placed, "wrong"],
          ]} />
          <${Reasons} groups=${one.notPlaced} />
          <${PodsPerNode} nodes=${one.nodes} caption=${`Where the pods of ${one.name} go`} />`,
      )}
    </section>
    ${missingNodes &&
    html`<section>
      <h2>${missingNodes.enough ? "Nodes that are missing" : "Such nodes are not enough"}</h2>
      <ul>${missingNodes.nodes.map((one) => html`<li>${number(one.count)} × ${one.shape}</li>`)}</ul>
      ${missingNodes.price !== null && html`<p>They cost ${number(missingNodes.price)} together${missingNodes.exact ? ", and no cheaper mix is enough" : ""}.</p>`}
      <${Reasons} groups=${missingNodes.left} />
    </section>`}
    ${more &&
    html`<section>
      <h2>${more.atLeast ? "At least " : ""}${plural(more.count, "more pod fits", "more pods fit")}</h2>
      ${more.stoppedBy && html`<p>The next one does not: ${more.stoppedBy.message}</p>`}
      <${PodsPerNode} nodes=${more.nodes} caption="Where further pods go" />
    </section>`}
    <${Preempted} heading="Pods that would be evicted" pods=${report.evictions} />
    <${Preempted} heading="Pods that are evicted for other pending pods" pods=${report.otherEvictions} />`;
}

function PodsPerNode({ nodes, caption }) {
  if (!nodes.length) return null;
  const most = largest(nodes.map((one) => one.pods));
  return html`<${DataTable}
    caption=${caption}
    part=${15}
    rows=${nodes}
    columns=${[
      { heading: "Node", text: (one) => one.node },
      { heading: "Pods", text: (one) => one.pods, isNumber: true },
      { heading: "Compared", text: (one) => one.pods, cell: (one) => html`<${Bar} share=${one.pods / most} bare />` },
    ]}
  />`;
}

/** Pods without a node, by reason. */
function Reasons({ groups, heading }) {
  if (!groups.length) return null;
  return html`${heading && html`<h2>${heading}</h2>`}
    <ul class="causes">${groups.map(
      (group) => html`<li><strong>${plural(group.pods.length, "pod")}</strong> ${group.unknown ? "not known, because the input lacks objects" : group.message}
        <p class="dim">${some(group.pods, 5)}</p></li>`,
    )}</ul>`;
}

function Preempted({ pods, heading }) {
  return html`<${Listing}
    heading=${heading}
    rows=${pods}
    columns=${[
      { heading: "Pod", text: (one) => one.pod },
      { heading: "Priority", text: (one) => one.priority, isNumber: true },
      { heading: "On node", text: (one) => one.node },
      { heading: "For", text: (one) => one.preemptor },
      { heading: "Then", text: (one) => (one.newNode ? `goes to ${one.newNode}` : one.controller ? "stays pending" : "nothing creates it again") },
    ]}
  />`;
}

// Drain.

const FATES = [
  ["Moved", "find another node", "good"],
  ["Stays", "stay, because they belong to the node", "calm"],
  ["Ended", "being deleted before", "s3"],
  ["Pending", "find no node", "wrong"],
  ["Waits", "kept by a budget", "s4"],
  ["Lost", "would not come back", "s5"],
];

export function drainSentence({ succeeds, nodes, pods }) {
  const trouble = pods.filter((pod) => ["Pending", "Waits", "Lost"].includes(pod.fate)).length;
  const which = nodes.length === 1 ? `Node ${nodes[0]}` : plural(nodes.length, "node");
  if (!pods.length) return `${which} can be drained: no pods are there.`;
  return `${which} can${succeeds ? "" : "not"} be drained without trouble: ${trouble ? `${number(trouble)} of ${plural(pods.length, "pod")} end without a place` : `all of ${plural(pods.length, "pod")} have a place`}.`;
}

export function DrainPage({ report }) {
  return html`<${Notes} report=${report} />
    <${Fates} pods=${report.pods} heading="What becomes of the pods" />
    <${Preempted} heading="Pods that are evicted for those that move" pods=${report.preempted} />
    ${report.flags.length > 0 && html`<p>kubectl drain needs <code>${report.flags.join(" ")}</code> for this.</p>`}`;
}

/** Pods of drained nodes: how many have which fate, then each, those in trouble first. */
function Fates({ pods, heading }) {
  if (!pods.length) return null;
  const order = ["Waits", "Pending", "Lost", "Moved", "Stays", "Ended"];
  const sorted = [...pods].sort((one, other) => order.indexOf(one.fate) - order.indexOf(other.fate));
  return html`<section>
    <h2>${heading}</h2>
    <${Stack} parts=${FATES.map(([fate, text, tone]) => [text, pods.filter((pod) => pod.fate === fate).length, tone])} />
    <${DataTable}
      caption="Pod by pod"
      rows=${sorted}
      columns=${[
        { heading: "Pod", text: (pod) => pod.pod },
        { heading: "On node", text: (pod) => pod.node },
        { heading: "Outcome", text: (pod) => pod.fate },
        { heading: "Goes to", text: (pod) => pod.newNode },
        { heading: "Round", text: (pod) => pod.round || "", isNumber: true },
        { heading: "Why", text: troubleOf },
      ]}
    />
  </section>`;
}

/** Why a pod has no place; "" if it has one. */
function troubleOf({ fate, budgets, message, unknown }) {
  if (fate === "Lost") return "would not come back: it has no controller";
  const why = unknown ? "not known, because the input lacks objects" : message;
  return fate === "Waits" ? `waits for ${budgets.join(", ")}: ${why}` : why;
}

/** Pods without a place, those with the same reason together. */
function troubles(pods) {
  return [...grouped(pods, troubleOf)].map(([why, found]) => `${some(found.map((pod) => pod.pod), 5)}: ${why}`).join("; ");
}

// A plan.

export function planSentence(report) {
  const parts = [
    [report.lost.length, "is lost", "are lost"],
    [podsIn(report.nowPending), "is pending", "are pending"],
    [report.waiting.length, "is kept by a budget", "are kept by budgets"],
    [report.moved.length, "moves", "move"],
    [report.noLongerPending.length, "is no longer pending", "are no longer pending"],
    [report.created.length, "is new", "are new"],
    [report.removed.length, "is removed", "are removed"],
  ];
  return `The plan ${report.works ? "works" : "leaves pods without a place"}: ${podsThat(parts) || "no pod changes"}.`;
}

function podsIn(groups) {
  return sum(groups.map((group) => group.pods.length));
}

export function PlanPage({ report }) {
  return html`<${Notes} report=${report} />
    <section>
      <h2>What becomes of the pods</h2>
      <${Stack} parts=${[
        ["moved", report.moved.length, "s0"],
        ["new, with a node", report.created.length, "good"],
        ["no longer pending", report.noLongerPending.length, "s6"],
        ["newly pending", podsIn(report.nowPending), "wrong"],
        ["kept by a budget", report.waiting.length, "s4"],
        ["lost", report.lost.length, "s5"],
        ["removed as planned", report.removed.length, "calm"],
      ]} />
      <ol>${report.steps.map((step) => html`<li>${step}</li>`)}</ol>
    </section>
    ${report.nowPending.length > 0 && html`<section><${Reasons} heading="Newly pending" groups=${report.nowPending} /></section>`}
    <${Records} name="lost" heading="Lost: nothing creates them again" records=${report.lost} />
    <${Fates} pods=${report.waiting} heading="Kept by a budget" />
    <${Preempted} heading="Pods that are evicted for others" pods=${report.preempted} />
    <section>
      <h2>The cluster before and after</h2>
      <p>${number(report.before.nodes)} → ${plural(report.after.nodes, "node")}, ${number(report.before.pods)} → ${plural(report.after.pods, "pod")} on nodes, ${number(report.before.pending)} → ${number(report.after.pending)} pending</p>
      <${Change} before=${report.before.resources} after=${report.after.resources} />
    </section>
    <${Records} name="moved" heading="Moved" records=${report.moved} />
    <${Records} name="noLongerPending" heading="No longer pending" records=${report.noLongerPending} />
    <${Records} name="created" heading="New, with a node" records=${report.created} />
    <${Records} name="removed" heading="Removed as planned" records=${report.removed} />`;
}

// An upgrade, and nodes to do without.

export function upgradeSentence({ works, nodes, atOnce, blocked, steps, moved }) {
  if (works) return `All of ${plural(nodes, "node")} can be upgraded, in ${plural(steps.length, "step")}; ${plural(moved, "pod is", "pods are")} evicted on the way${lostIn(steps)}.`;
  const others = steps.length ? `; the others can, in ${plural(steps.length, "step")} of at most ${number(atOnce)}; ${plural(moved, "pod is", "pods are")} evicted on the way${lostIn(steps)}` : "";
  return `${steps.length ? number(blocked.length) : "None"} of ${plural(nodes, "node")} can${steps.length ? "not" : ""} be upgraded${others}.`;
}

export function UpgradePage({ report }) {
  return html`<${Notes} report=${report} /><${Blocked} heading="Nodes that cannot be upgraded" nodes=${report.blocked} /><${Steps} heading="The order" steps=${report.steps} />`;
}

export function compactSentence({ removable, kept }) {
  const count = removable.length;
  return `${count ? number(count) : "None"} of ${plural(count + kept.length, "node")} can be removed${lostIn(removable) || " so that every pod keeps a place"}.`;
}

/** What it costs in pods that nothing creates again; "" if none. */
function lostIn(steps) {
  const lost = sum(steps.map((step) => step.lost));
  return lost ? `; ${plural(lost, "pod without a controller goes", "pods without a controller go")} for good` : "";
}

export function CompactPage({ report }) {
  return html`<${Notes} report=${report} />
    <${Steps} heading="Nodes that can go, in this order" steps=${report.removable} />
    <section>
      <h2>The cluster before and after</h2>
      <p>${number(report.before.nodes)} → ${plural(report.after.nodes, "node")}</p>
      <${Change} before=${report.before.resources} after=${report.after.resources} />
    </section>
    <${Blocked} heading="Nodes that stay" nodes=${report.kept} />`;
}

function Steps({ steps, heading }) {
  const most = largest(steps.map((step) => step.moved));
  return html`<${Listing}
    heading=${heading}
    rows=${steps.map((step, at) => ({ ...step, at: at + 1 }))}
    columns=${[
      { heading: "Step", text: (step) => step.at, isNumber: true },
      { heading: "Nodes", text: (step) => step.nodes.join(", ") },
      { heading: "Pods evicted", text: (step) => step.moved, isNumber: true },
      ...(steps.some((step) => step.lost) ? [{ heading: "For good", text: (step) => step.lost, isNumber: true }] : []),
      { heading: "Compared", text: (step) => step.moved, cell: (step) => html`<${Bar} share=${step.moved / most} bare />` },
    ]}
  />`;
}

function Blocked({ nodes, heading }) {
  return html`<${Listing}
    heading=${heading}
    rows=${nodes}
    columns=${[
      { heading: "Node", text: (one) => one.node },
      { heading: "Pods in the way", text: (one) => one.pods.length, isNumber: true },
      { heading: "Why", text: (one) => troubles(one.pods) || "pods elsewhere would be evicted without a place" },
    ]}
  />`;
}

// What pods request.

export function topSentence({ group, rows, total }) {
  const [cpu, memory] = total.resources.map((use) => (use.share === null ? "none" : `${number(use.share * 100)} %`));
  return `Requests by ${group}: ${number(rows.length)} of them, ${cpu} of cpu and ${memory} of memory in all.`;
}

export function TopPage({ report }) {
  const names = report.total.resources.map((use) => use.resource);
  const isOfNodes = report.rows.every((row) => row.pending === null);
  const use = (row, name) => row.resources.find((one) => one.resource === name);
  return html`${report.room &&
    html`<p>${plural(report.room.total, "more pod", "more pods")} of ${report.room.shape} fit.${report.room.stoppedBy.map((one) => ` Then ${one.reason}${one.nodes ? ` on ${plural(one.nodes, "node")}` : ""}.`)}</p>`}
    <${DataTable}
      caption=${`What pods request, by ${report.group}`}
      rows=${report.rows}
      columns=${[
        { heading: "Name", text: (row) => [row.kind, row.namespace ? `${row.namespace}/${row.name}` : row.name || "none"].filter(Boolean).join(" ") },
        ...(report.room ? [{ heading: "Room", text: (row) => row.room ?? 0, isNumber: true }] : []),
        { heading: "Nodes", text: (row) => row.nodes, isNumber: true },
        ...(isOfNodes ? [] : [{ heading: "Pending", text: (row) => row.pending.pods, isNumber: true }]),
        ...names.map((name) => ({
          heading: name,
          text: (row) => use(row, name)?.share ?? -1,
          cell: (row) => html`<${Bar} share=${use(row, name)?.share} text=${amount(name, use(row, name)?.requested ?? 0)} />`,
        })),
      ]}
    />`;
}
