// A playback's columns: the view of the cluster at a moment, lines over time, and events.

import { byLength, grouped } from "./format.js";

const ABSENT = -1;
const BINS = 400;

const replays = new WeakMap();

/** Return what is computed once: typed columns, rows in the order of the map, lines and events. */
export function replayOf(playback) {
  if (!replays.has(playback)) {
    const replay = columnsOf(playback);
    replays.set(playback, Object.assign(replay, { lines: linesOf(replay), events: eventsOf(replay) }));
  }
  return replays.get(playback);
}

function columnsOf(playback) {
  const { nodes, pods, workloads, resources } = playback;
  const zones = [...new Set(nodes.zones)];
  const order = nodes.names.map((_, row) => row);
  const inOrder = new Intl.Collator("en", { numeric: true }).compare;
  order.sort((one, other) => inOrder(nodes.zones[one], nodes.zones[other]) || inOrder(nodes.names[one], nodes.names[other]));
  return {
    playback,
    zones,
    order,
    arrived: Float64Array.from(pods.arrived),
    bound: Float64Array.from(pods.bound),
    ended: Float64Array.from(pods.ended),
    nodeOf: Int32Array.from(pods.nodes),
    workloadOf: Int32Array.from(pods.workloads),
    // Per resource, what a pod of each workload requests.
    requests: resources.map((name) => Float64Array.from(workloads, (one) => (name === "pods" ? 1 : one.requests[name] ?? 0))),
    gone: playback.nodeStates.indexOf("gone"),
    names: { key: "", list: [] },
  };
}

/** The state of each node at a time: a position in nodeStates, or -1 before it joins. */
function statesAt(replay, at) {
  const { nodes, nodeChanges } = replay.playback;
  const states = new Int8Array(nodes.names.length).fill(ABSENT);
  for (let i = 0; i < nodeChanges.at.length && nodeChanges.at[i] <= at; i++) states[nodeChanges.nodes[i]] = nodeChanges.states[i];
  return states;
}

/** The cluster at a time, as a ClusterView. */
export function viewAt(replay, at) {
  const { playback, zones, arrived, bound, ended, nodeOf, workloadOf, requests } = replay;
  const { nodes, nodeStates, resources, workloads } = playback;
  const states = statesAt(replay, at);
  const there = replay.order.filter((row) => states[row] !== ABSENT && states[row] !== replay.gone);
  const requested = resources.map(() => new Float64Array(nodes.names.length));
  const counts = new Map();
  const waiting = [];
  for (let pod = 0; pod < arrived.length && arrived[pod] <= at; pod++) {
    if (ended[pod] >= 0 && ended[pod] <= at) continue;
    if (bound[pod] < 0 || bound[pod] > at) {
      waiting.push(pod);
      continue;
    }
    const [node, workload] = [nodeOf[pod], workloadOf[pod]];
    for (let i = 0; i < resources.length; i++) requested[i][node] += requests[i][workload];
    const key = node * workloads.length + workload;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const onNode = nodes.names.map(() => []);
  for (const [key, count] of counts) {
    onNode[Math.floor(key / workloads.length)].push(key % workloads.length, count);
  }
  return {
    kind: "ClusterView",
    zones,
    poolLabel: "",
    pools: [""],
    resources,
    nodes: {
      names: namesThere(replay, there),
      zones: there.map((row) => zones.indexOf(nodes.zones[row])),
      pools: there.map(() => 0),
      cordoned: there.map((row) => nodeStates[states[row]] === "cordoned"),
      ready: there.map((row) => nodeStates[states[row]] !== "unreachable"),
      allocatable: nodes.allocatable.map((column) => there.map((row) => column[row])),
      requested: requested.map((column) => there.map((row) => column[row])),
      pods: there.map((row) => onNode[row]),
    },
    workloads,
    pendingPods: waiting.length,
    pending: pendingGroups(replay, waiting, at),
  };
}

/** The names of nodes; the same list as before for the same nodes, so that the map stays as it is. */
function namesThere(replay, rows) {
  const key = rows.join();
  if (replay.names.key !== key) replay.names = { key, list: rows.map((row) => replay.playback.nodes.names[row]) };
  return replay.names.list;
}

/** Pending pods by the reason of their last attempt, the largest group first. */
function pendingGroups(replay, waiting, at) {
  const { pods, podReasons, reasons, workloads } = replay.playback;
  const last = new Map();
  for (let i = 0; i < podReasons.at.length && podReasons.at[i] <= at; i++) last.set(podReasons.pods[i], podReasons.reasons[i]);
  return byLength(grouped(waiting, (pod) => last.get(pod) ?? -1)).map(([reason, rows]) => ({
    reasons: reason < 0 ? ["not rejected yet"] : reasons[reason].split("; "),
    fits: false,
    count: rows.length,
    pods: rows.slice(0, 20).map((pod) => pods.names[pod]),
    workloads: countedNames(rows.map((pod) => workloadName(workloads[replay.workloadOf[pod]]))),
    why: null,
  }));
}

function countedNames(names) {
  return byLength(grouped(names, (name) => name)).map(([name, found]) => (found.length > 1 ? `${name}, ${found.length} pods` : name));
}

function workloadName({ kind, namespace, name }) {
  return [kind, [namespace, name].filter(Boolean).join("/")].join(" ");
}

/** Lines over time: a share per resource that nodes have, and numbers of pods; with their times. */
function linesOf(replay) {
  const { playback, arrived, bound, ended, nodeOf, workloadOf, requests } = replay;
  const end = Math.max(playback.endSeconds, 1e-3);
  const times = Array.from({ length: BINS + 1 }, (_, i) => (end * i) / BINS);
  // A change counts from the first moment that is not before it.
  const binOf = (at) => Math.min(BINS, Math.ceil((at / end) * BINS - 1e-9));
  const pending = new Float64Array(BINS + 1);
  const running = new Float64Array(BINS + 1);
  const asked = playback.resources.map(() => new Float64Array(BINS + 1));
  const change = (pod, at, sign) => {
    running[binOf(at)] += sign;
    for (let i = 0; i < asked.length; i++) asked[i][binOf(at)] += sign * requests[i][workloadOf[pod]];
  };
  for (let pod = 0; pod < arrived.length; pod++) {
    const isBound = bound[pod] >= 0 && nodeOf[pod] >= 0;
    const stops = isBound ? bound[pod] : ended[pod];
    pending[binOf(arrived[pod])] += 1;
    if (stops >= 0) pending[binOf(stops)] -= 1;
    if (isBound) change(pod, bound[pod], 1);
    if (isBound && ended[pod] >= 0) change(pod, ended[pod], -1);
  }
  const given = playback.nodes.allocatable.map(() => new Float64Array(BINS + 1));
  const isThere = new Uint8Array(playback.nodes.names.length);
  const { at, nodes, states } = playback.nodeChanges;
  at.forEach((moment, i) => {
    const is = states[i] === replay.gone ? 0 : 1;
    given.forEach((column, resource) => {
      column[binOf(moment)] += (is - isThere[nodes[i]]) * playback.nodes.allocatable[resource][nodes[i]];
    });
    isThere[nodes[i]] = is;
  });
  const [capacity, use] = [given.map(summed), asked.map(summed)];
  const shares = playback.resources.flatMap((name, i) =>
    capacity[i].some((value) => value > 0) ? [{ name, values: use[i].map((value, bin) => (capacity[i][bin] > 0 ? value / capacity[i][bin] : null)) }] : [],
  );
  const pods = [
    { name: "pending", values: summed(pending) },
    { name: "on nodes", values: summed(running) },
  ];
  return { times, shares, pods };
}

function summed(changes) {
  let total = 0;
  return Array.from(changes, (change) => (total += change));
}

const JOINS = ["return", "node joins", "nodes join"];
const STAYS_CORDONED = ["return", "node is back and still cordoned", "nodes are back and still cordoned"];
const NODE_EVENTS = {
  ready: ["return", "node is ready again", "nodes are ready again"],
  cordoned: ["cordon", "node is cordoned", "nodes are cordoned"],
  unreachable: ["failure", "node is unreachable", "nodes are unreachable"],
  gone: ["removal", "node is removed", "nodes are removed"],
};
const POD_EVENTS = {
  preempted: ["preemption", "pod is preempted", "pods are preempted"],
  drained: ["drain", "pod leaves a drained node", "pods leave drained nodes"],
  evicted: ["eviction", "pod is evicted from a failed node", "pods are evicted from failed nodes"],
  removed: ["eviction", "pod goes with its removed node", "pods go with their removed nodes"],
};
const LOST = ["loss", "pod is lost: nothing creates it again", "pods are lost: nothing creates them again"];
const STARTS_OVER = ["restart", "pod starts over", "pods start over"];

/** What happened, in order of time: each with its time, kind, a sentence, and how many it was. */
function eventsOf(replay) {
  const { playback } = replay;
  const { names } = playback.nodes;
  const found = new Map();
  // Events of one kind that happen together are one.
  const together = Math.max(playback.endSeconds / BINS, 1e-3);
  const add = ([kind, ...what], at, name) => {
    const key = `${what[0]} ${Math.floor(at / together)}`;
    if (!found.has(key)) found.set(key, { kind, what, at, names: [] });
    const event = found.get(key);
    event.at = Math.min(event.at, at);
    event.names.push(name);
  };
  const before = new Map();
  const cordoned = new Set(); // also while they are unreachable
  playback.nodeChanges.at.forEach((at, i) => {
    const node = playback.nodeChanges.nodes[i];
    const state = playback.nodeStates[playback.nodeChanges.states[i]];
    const isNew = (before.get(node) ?? "gone") === "gone";
    before.set(node, state);
    const what = state === "cordoned" && cordoned.has(node) ? STAYS_CORDONED : NODE_EVENTS[state];
    if (state === "cordoned") cordoned.add(node);
    else if (state !== "unreachable") cordoned.delete(node);
    if (at > 0) add(isNew ? JOINS : what, at, names[node]);
  });
  playback.pods.ends.forEach((end, pod) => {
    const why = playback.podEnds[end];
    if (POD_EVENTS[why] && playback.pods.ended[pod] >= 0) add(POD_EVENTS[why], playback.pods.ended[pod], playback.pods.names[pod]);
  });
  for (const pod of playback.lost) add(LOST, playback.pods.ended[pod], playback.pods.names[pod]);
  playback.restarted.forEach((pod, i) => add(STARTS_OVER, playback.restartedAt[i], playback.pods.names[pod]));
  return [...found.values()].sort((one, other) => one.at - other.at);
}
