// What the map's colours can mean: the use of a resource, free devices, pods of a priority.

import { amount, grouped, largest, number, percent, plural, sum } from "./format.js";

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
    const most = largest(given, 0);
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
  const classes = grouped(view.workloads.keys(), (at) => {
    const { priority, priorityClass } = view.workloads[at];
    return priorityClass || `priority ${priority}`;
  });
  const priorityOf = ([, [first]]) => view.workloads[first].priority;
  const found = [...classes].sort((one, other) => priorityOf(other) - priorityOf(one));
  return found.map(([name, rows]) => {
    const workloads = new Set(rows);
    const counts = view.nodes.pods.map((pods) => sum(podsOf(pods).map(([at, n]) => (workloads.has(at) ? n : 0))));
    const most = largest(counts);
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
