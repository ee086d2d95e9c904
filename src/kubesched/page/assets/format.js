// Numbers in words: amounts of resources, shares, durations.

const BYTES = /^(memory|ephemeral-storage|hugepages-.*)$/;
const UNITS = [
  ["d", 86400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
];

/** A number with at most three significant digits below 1,000, and with commas above. */
export function number(value) {
  if (Math.abs(value) >= 100) return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
  // toPrecision rounds as Python does: 35.55, which is a little less than that, to 35.5.
  return Number(value.toPrecision(3)).toLocaleString("en-US", { maximumSignificantDigits: 3 });
}

export function percent(share) {
  if (share === null || share === undefined) return "–";
  return `${number(share * 100)} %`;
}

/** An amount as Kubernetes' objects give it: cpu in millicores, memory in bytes, others in units. */
export function amount(resource, value) {
  if (resource === "cpu") return number(value / 1000);
  if (!BYTES.test(resource)) return number(value);
  const power = value ? Math.min(5, Math.max(0, Math.floor(Math.log2(Math.abs(value)) / 10))) : 0;
  return `${number(value / 1024 ** power)}${["", " Ki", " Mi", " Gi", " Ti", " Pi"][power]}`;
}

/** Seconds in the largest unit of which there is at least one. */
export function duration(seconds) {
  const [unit, size] = UNITS.find(([, each]) => Math.abs(seconds) >= each) ?? ["ms", 0.001];
  return seconds ? `${number(seconds / size)} ${unit}` : "0 s";
}

export function plural(count, word, words = `${word}s`) {
  return `${number(count)} ${count === 1 ? word : words}`;
}

export function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/** The largest of several values, at least `least`. */
export function largest(values, least = 1) {
  return values.reduce((most, value) => Math.max(most, value), least);
}

/** Items by what a function returns for each, as a map of lists. */
export function grouped(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return groups;
}

/** Groups as pairs of a key and a list, the longest list first. */
export function byLength(groups) {
  return [...groups].sort(([, one], [, other]) => other.length - one.length);
}

/** The first of several names, and how many more there are. */
export function some(names, most = 3) {
  return `${names.slice(0, most).join(", ")}${names.length > most ? ` and ${number(names.length - most)} more` : ""}`;
}

/** Numbers of pods with what becomes of them, such as "2 pods are lost, 1 moves"; those of 0 are left out. */
export function podsThat(parts) {
  return parts
    .filter(([count]) => count)
    .map(([count, one, more], at) => (at ? plural(count, one, more) : `${plural(count, "pod")} ${count === 1 ? one : more}`))
    .join(", ");
}

/** Requests of a pod, such as "0.5 cpu, 1 Gi memory". */
export function requests(amounts) {
  return Object.entries(amounts)
    .filter(([, value]) => value)
    .map(([resource, value]) => `${amount(resource, value)} ${resource}`)
    .join(", ");
}

/** A name in camelCase or PascalCase as words: "noLongerPending" is "no longer pending". */
export function words(name) {
  return name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
}
