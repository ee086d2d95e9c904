// What the map's colours can mean: the use of a resource, free devices, pods of a priority.

import { amount, number, percent, plural } from "./format.js";

const COMMON = ["cpu", "memory", "pods", "ephemeral-storage"];

/**
 * The measures of a view. Each has an id, a group and a label; `share`, a function of a row with a
 * number between 0 and 1, or null; `text`, the same in words; words for the lowest and highest; and
 * perhaps `none`, what null means.
 */
export function measuresOf(view) {
  return [...view.resources.map((name, at) => use(view, name, at)), ...devices(view), ...priorities(view)];
}

function use(view, name, at) {
  const [given, asked] = [view.nodes.allocatable[at], view.nodes.requested[at]];
  const share = (row) => (given[row] > 0 ? asked[row] / given[row] : null);
  return {
    id: `use:${name}`,
    group: "Requested of allocatable",
    label: `${name} requested`,
    share,
    text: (row) =>
      given[row] > 0
        ? `${percent(share(row))} of ${amount(name, given[row])} ${name}`
        : `no ${name}`,
    low: "0 %",
    high: "100 %",
  };
}

function devices(view) {
  return view.resources.flatMap((name, at) => {
    const [given, asked] = [view.nodes.allocatable[at], view.nodes.requested[at]];
    const most = given.reduce((one, other) => Math.max(one, other), 0);
    if (COMMON.includes(name) || name.startsWith("hugepages-") || !most) return [];
    const free = (row) => Math.max(0, given[row] - asked[row]);
    return [
      {
        id: `free:${name}`,
        group: "Free devices",
        label: `free ${name}`,
        share: (row) => (given[row] > 0 ? free(row) / most : null),
        text: (row) => (given[row] > 0 ? `${number(free(row))} of ${number(given[row])} ${name} free` : `no ${name}`),
        low: "0",
        high: `${number(most)} free`,
      },
    ];
  });
}

function priorities(view) {
  const classes = new Map();
  view.workloads.forEach(({ priority, priorityClass }, at) => {
    const name = priorityClass || `priority ${priority}`;
    if (!classes.has(name)) classes.set(name, { name, priority, workloads: new Set() });
    classes.get(name).workloads.add(at);
  });
  const found = [...classes.values()].sort((one, other) => other.priority - one.priority);
  return found.map(({ name, workloads }) => {
    const counts = view.nodes.pods.map((pods) => podsOf(pods).reduce((sum, [at, n]) => sum + (workloads.has(at) ? n : 0), 0));
    const most = counts.reduce((one, other) => Math.max(one, other), 1);
    return {
      id: `priority:${name}`,
      group: "Pods by priority",
      label: `pods of ${name}`,
      share: (row) => counts[row] / most,
      text: (row) => `${plural(counts[row], "pod")} of ${name}`,
      low: "0",
      high: plural(most, "pod"),
    };
  });
}

/** The pods of a node as pairs of a workload's row and a count. */
export function podsOf(flat) {
  const pairs = [];
  for (let at = 0; at < flat.length; at += 2) pairs.push([flat[at], flat[at + 1]]);
  return pairs;
}
