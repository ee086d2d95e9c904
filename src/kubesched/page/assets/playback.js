// A simulation played back: a time slider that moves the map, lines over time, and events.

import { MapSection } from "./cluster.js";
import { html, useEffect, useMemo, useRef, useState } from "./dom.js";
import { duration, largest, number, percent, plural, some, sum } from "./format.js";
import { replayOf, viewAt } from "./replay.js";
import { DataTable } from "./tables.js";
import { clock, TimeChart, Zoom } from "./timechart.js";
import { PendingGroups } from "./why.js";

const STEPS = 1000;
const SECONDS_OF_A_RUN = 40;
const COLOURS = { cordon: "--mark", drain: "--mark", failure: "--bad", eviction: "--bad", removal: "--bad", loss: "--bad", preemption: "--accent", restart: "--mark" };
const MARKED = ["cordon", "failure", "removal", "preemption", "loss"];
const WORDS = {
  cordon: "cordoned", failure: "node failed", removal: "node removed", preemption: "preemption", loss: "pod lost",
};

export function PlaybackPage({ report: playback }) {
  const replay = replayOf(playback);
  const { lines, events } = replay;
  const marks = useMemo(() => events.filter((one) => MARKED.includes(one.kind)).map((one) => ({ at: one.at, colour: COLOURS[one.kind] })), [events]);
  const end = playback.endSeconds;
  const [chosen, setChosen] = useState(null);
  const [range, setRange] = useState(null);
  const [isPlaying, setPlaying] = useState(false);
  const worst = worstOf(lines);
  // Until the reader chooses a time: the worst moment, or the end of a record that grows.
  const at = Math.min(chosen ?? (playback.isWhole ? worst.at : end), end);
  usePlaying(isPlaying, at, end, setChosen, setPlaying);
  const view = useMemo(() => viewAt(replay, at), [replay, at]);
  const choose = (time) => setChosen(Math.min(end, Math.max(0, time)));
  const toggle = () => {
    if (!isPlaying && at >= end) choose(0);
    setPlaying(!isPlaying);
  };
  const keys = (event) => {
    if (event.target.matches("input:not([type=range]), select, textarea, canvas")) return;
    if (event.key === "n" || event.key === "p") goToEvent(events, at, event.key === "n" ? 1 : -1, choose);
    else if (event.key === " " && !event.target.matches("button, summary")) toggle();
    else return;
    event.preventDefault();
  };
  const shared = { times: lines.times, at, range, onTime: choose, onRange: setRange, marks };
  const kinds = [...new Set(marks.map((mark) => mark.colour))];
  return html`<div onKeyDown=${keys}>
    ${!playback.isWhole && html`<p class="note">The record ends at ${clock(end)}.</p>`}
    <section aria-labelledby="playback-heading" class="player">
      <h2 id="playback-heading">Playback</h2>
      <div class="controls">
        <button type="button" class="play" onClick=${toggle}>${isPlaying ? "Pause" : "Play"}</button>
        <button type="button" onClick=${() => goToEvent(events, at, -1, choose)} aria-label="Previous event">◀ event</button>
        <button type="button" onClick=${() => goToEvent(events, at, 1, choose)} aria-label="Next event">event ▶</button>
        <output class="clock">${clock(at)}</output><span class="dim">of ${clock(end)}</span>
        ${range && html`<button type="button" onClick=${() => setRange(null)}>Show all times</button>`}
      </div>
      <input
        type="range" min="0" max=${end} step=${end / STEPS} value=${at} class="slider"
        aria-label="Time" aria-valuetext=${`${clock(at)}: ${inWords(view)}`}
        onInput=${(event) => { setPlaying(false); choose(Number(event.target.value)); }}
      />
      <p class="now" role="status" aria-live=${isPlaying ? "off" : "polite"}>${inWords(view)}</p>
      <${RecentEvents} events=${events} at=${at} end=${end} />
    </section>
    <section aria-labelledby="timeline-heading">
      <h2 id="timeline-heading">Timeline</h2>
      <p class="dim hint">Click to go to a time, drag to zoom in, double-click for all.
        ${kinds.map((kind) => html`<span class="key"><span class="line-key" style=${{ background: `var(${kind})` }}></span>${kindWords(kind, events)}</span>`)}</p>
      <${Zoom} times=${lines.times} range=${range} onRange=${setRange} hint="" />
      <div class="charts">
        <${TimeChart} title="Pods" lines=${lines.pods} text=${number} ...${shared} />
        <${TimeChart} title="Requested of allocatable" lines=${lines.shares} text=${percent} top=${1} ...${shared} />
      </div>
    </section>
    <${MapSection} view=${view} />
    ${view.pendingPods > 0 && html`<${PendingGroups} groups=${view.pending} past />`}
    <section aria-labelledby="events-heading">
      <h2 id="events-heading">Events</h2>
      ${events.length ? html`<${DataTable}
        caption="What happened to nodes and pods"
        rows=${events}
        part=${15}
        columns=${[
          { heading: "Time", text: (one) => one.at, cell: (one) => html`<button type="button" onClick=${() => choose(one.at)}>${clock(one.at)}</button>` },
          { heading: "Event", text: eventWords },
          { heading: "Names", text: (one) => some(one.names) },
        ]}
      />` : html`<p>Nothing happened to nodes, and no pod was stopped.</p>`}
    </section>
  </div>`;
}

/** When most pods waited, and how many. */
function worstOf({ times, pods: [{ values }] }) {
  const waiting = largest(values, 0);
  return { waiting, at: times[waiting ? values.indexOf(waiting) : times.length - 1] };
}

/** The answer in one sentence: what went wrong, and when it was worst. */
export function playbackSentence(playback) {
  const { events, lines } = replayOf(playback);
  const worst = worstOf(lines);
  const count = (kind) => sum(events.map((one) => (one.kind === kind ? one.names.length : 0)));
  const found = [
    [count("failure"), "node failed", "nodes failed"],
    [count("cordon"), "node was cordoned", "nodes were cordoned"],
    [count("removal"), "node was removed", "nodes were removed"],
    [count("preemption"), "pod was preempted", "pods were preempted"],
    [count("loss"), "pod was lost", "pods were lost"],
  ].filter(([number]) => number);
  const what = found.map((one) => plural(...one)).join(", ") || "No node changed, and no pod was stopped";
  const waits = worst.waiting ? `At most ${plural(worst.waiting, "pod")} waited at once, at ${clock(worst.at)}.` : "No pod waited long.";
  return `${plural(playback.pods.names.length, "pod")} in ${duration(playback.endSeconds)}: ${what[0].toLowerCase()}${what.slice(1)}. ${waits}`;
}

/** Advance the time while it plays; a whole run takes 40 seconds. */
function usePlaying(isPlaying, at, end, setChosen, setPlaying) {
  const now = useRef(at);
  now.current = at;
  useEffect(() => {
    if (!isPlaying) return undefined;
    let last = performance.now();
    let frame = requestAnimationFrame(function advance(moment) {
      const next = now.current + ((moment - last) / 1000 / SECONDS_OF_A_RUN) * end;
      last = moment;
      setChosen(Math.min(end, next));
      if (next >= end) setPlaying(false);
      else frame = requestAnimationFrame(advance);
    });
    return () => cancelAnimationFrame(frame);
  }, [isPlaying, end]);
}

/** Go to the next event, or to the one before. */
function goToEvent(events, at, sign, choose) {
  const found = events.filter((one) => (one.at - at) * sign > 1e-6);
  if (found.length) choose((sign > 0 ? found[0] : found.at(-1)).at);
}

function inWords(view) {
  const { nodes, resources } = view;
  const shares = resources.flatMap((name, i) => {
    const given = sum(nodes.allocatable[i]);
    return given > 0 && name !== "pods" ? [`${percent(sum(nodes.requested[i]) / given)} of ${name}`] : [];
  });
  const cordoned = nodes.cordoned.filter(Boolean).length;
  const failed = nodes.ready.filter((one) => !one).length;
  const states = [cordoned && `${number(cordoned)} cordoned`, failed && `${number(failed)} unreachable`].filter(Boolean);
  const waits = view.pendingPods ? `${plural(view.pendingPods, "pod waits", "pods wait")}` : "no pod waits";
  const used = shares.length ? `, ${shares.slice(0, 3).join(", ")} requested` : "";
  return `${plural(nodes.names.length, "node")}${states.length ? ` (${states.join(", ")})` : ""}${used}, ${waits}.`;
}

/** What happened in the last fiftieth of the time. */
function RecentEvents({ events, at, end }) {
  const recent = events.filter((one) => one.at <= at && one.at > at - end / 50);
  return html`<p class="recent dim">${recent.slice(-3).map((one) => `${clock(one.at)} ${eventWords(one)}`).join("; ") || "\u00a0"}</p>`;
}

function eventWords({ what: [one, many], names }) {
  return plural(names.length, one, many);
}

function kindWords(kind, events) {
  const found = MARKED.filter((one) => COLOURS[one] === kind && events.some((event) => event.kind === one));
  return found.map((one) => WORDS[one]).join(", ");
}
