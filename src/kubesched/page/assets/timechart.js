// Lines over time with uPlot: zoom by dragging, a mark for the current time, marks for events.

import { html, useEffect, useRef, useState } from "./dom.js";
import { number, percent } from "./format.js";
import { colour, useDark } from "./theme.js";

const HEIGHT = 180;
const LANE = 7;
const LINES_MAX = 40;
const NO_MARKS = [];
const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact" });

/** Seconds as a clock shows them: 1:02:05. */
export function clock(seconds) {
  const whole = Math.floor(seconds + 1e-6);
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h || m ? `${h}:${String(m).padStart(2, "0")}:${String(s).padStart(2, "0")}` : `${Math.round(seconds * 10) / 10} s`;
}

/**
 * A chart of lines.
 *
 * times: in seconds; lines: each with a name and a value per time; text: formats a value;
 * at: the current time, or null for none; range: what is shown of the times, or null for all;
 * onTime and onRange: called with a time or range that the reader chose; marks: times of events,
 * each with a colour; top: the upper end of the values, or null for their largest.
 */
export function TimeChart({ title, times, lines, text, at = null, range, onTime = null, onRange, marks = NO_MARKS, top = null }) {
  const isDark = useDark();
  const place = useRef(null);
  const chart = useRef(null);
  const needle = useRef(null);
  const handlers = useRef({});
  handlers.current = { onTime, onRange };
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(() => setWidth(place.current.clientWidth));
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (!width) return undefined;
    const [ink, rule] = [colour("--dim"), colour("--rule")];
    const colours = colour("--series").split(",").map((one) => one.trim());
    const axis = { stroke: ink, grid: { stroke: rule, width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const drawn = new uPlot(
      {
        width,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
        scales: { x: { time: false }, y: { range: (_, low, high) => [0, top === null ? Math.max(1, high * 1.2) : Math.max(top, high) * (marks.length ? 1.15 : 1)] } },
        axes: [
          { ...axis, size: 30, values: (_, values) => values.map(clock), space: 90, incrs: [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 864000] },
          { ...axis, values: (_, values) => values.map((value) => (value >= 10000 ? COMPACT.format(value) : text(value))), size: 52, space: 30 },
        ],
        series: [{}, ...lines.map((line, i) => ({ label: line.name, stroke: colours[i % colours.length], width: 1.6, points: { show: false } }))],
        hooks: {
          setSelect: [
            (self) => {
              if (self.select.width > 4) {
                const edges = [self.select.left, self.select.left + self.select.width];
                handlers.current.onRange(edges.map((x) => self.posToVal(x, "x")));
                self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
              }
            },
          ],
          drawClear: [(self) => drawMarks(self, marks)],
        },
      },
      [times, ...lines.map((line) => line.values)],
      place.current,
    );
    const choose = (event) => handlers.current.onTime?.(drawn.posToVal(event.offsetX, "x"));
    const reset = () => handlers.current.onRange(null);
    drawn.over.addEventListener("click", choose);
    drawn.over.addEventListener("dblclick", reset);
    drawn.over.append(needle.current);
    chart.current = drawn;
    return () => drawn.destroy();
  }, [times, lines, marks, width, isDark, top]);
  useEffect(() => {
    const drawn = chart.current;
    if (!drawn || !width) return;
    const [from, to] = range ?? [times[0], times.at(-1)];
    if (drawn.scales.x.min !== from || drawn.scales.x.max !== to) drawn.setScale("x", { min: from, max: to });
    requestAnimationFrame(() => {
      const left = at === null ? -1 : drawn.valToPos(at, "x");
      needle.current.hidden = !(left >= 0 && left <= drawn.over.clientWidth);
      needle.current.style.left = `${left}px`;
    });
  });
  return html`<figure class="timechart" aria-label=${title}>
    <figcaption>${title}
      <span class="keys">${lines.map((line, i) => html`<span class="key"><${Swatch} number=${i} />${line.name}</span>`)}</span>
    </figcaption>
    <div ref=${place} aria-hidden="true"></div>
    <div ref=${needle} class="needle" hidden></div>
  </figure>`;
}

/** Charts that zoom together; each has a title, a unit, times, lines, and the span that they cover. */
export function Charts({ charts }) {
  const [range, setRange] = useState(null);
  if (!charts.length) return null;
  return html`<section aria-labelledby="charts-heading">
    <h2 id="charts-heading">Over time</h2>
    <${Zoom} times=${charts[0].span} range=${range} onRange=${setRange} />
    <div class="charts">${charts.map(
      (chart) => html`<${TimeChart}
        key=${chart.title} title=${chart.title} times=${chart.times} lines=${chart.lines} range=${range ?? chart.span} onRange=${setRange}
        text=${chart.unit === "share" ? percent : number} top=${chart.unit === "share" ? 1 : null}
      />`,
    )}</div>
  </section>`;
}

/** The title of a chart, with the unit of its series unless the name of their chart has it. */
export function withUnit(title, { chart, unit }) {
  return unit === "share" || chart.toLowerCase().startsWith(unit) ? title : `${title}, ${unit}`;
}

/** How charts are zoomed: by buttons too, for readers without a mouse. */
export function Zoom({ times, range, onRange, hint = "Drag to zoom in, double-click for all." }) {
  const [first, last] = [times[0], times.at(-1)];
  const [from, to] = range ?? [first, last];
  const change = (factor, steps) => {
    const span = Math.min(last - first, (to - from) * factor);
    const start = Math.max(first, Math.min(last - span, (from + to - span) / 2 + steps * span));
    onRange(span < last - first ? [start, start + span] : null);
  };
  const buttons = [["Zoom in", 0.5, 0], ["Zoom out", 2, 0], ["Earlier", 1, -0.5], ["Later", 1, 0.5]];
  return html`<p class="dim hint" role="group" aria-label="Zoom of the charts">${hint}
    ${buttons.map(([name, factor, steps]) => html`${" "}<button type="button" onClick=${() => change(factor, steps)}>${name}</button>`)}
    ${range && html`${" "}<button type="button" onClick=${() => onRange(null)}>All times</button>`}
    <span class="unseen" role="status">${range ? `${clock(from)} to ${clock(to)}` : "all times"}</span></p>`;
}

/** The colour of a line, beside its name. */
function Swatch({ number }) {
  useDark();
  const colours = colour("--series").split(",");
  return html`<span class="line-key" style=${{ background: colours[number % colours.length] }}></span>`;
}

/** Draw events as ticks at the top, a lane per colour, and as lines where there are few in sight. */
function drawMarks(chart, marks) {
  const { ctx: pen, bbox } = chart;
  const lanes = [...new Set(marks.map((mark) => mark.colour))];
  const colours = lanes.map(colour);
  const places = marks.map((mark) => [chart.valToPos(mark.at, "x", true), lanes.indexOf(mark.colour)]);
  const seen = places.filter(([x]) => x >= bbox.left && x <= bbox.left + bbox.width);
  const height = LANE * devicePixelRatio;
  pen.save();
  pen.lineWidth = 1.5 * devicePixelRatio;
  for (const [x, lane] of seen) {
    pen.strokeStyle = colours[lane];
    const top = bbox.top + lane * height;
    line(pen, x, top, top + height - devicePixelRatio);
    if (seen.length > LINES_MAX) continue;
    pen.globalAlpha = 0.4;
    line(pen, x, bbox.top, bbox.top + bbox.height);
    pen.globalAlpha = 1;
  }
  pen.restore();
}

function line(pen, x, top, bottom) {
  pen.beginPath();
  pen.moveTo(x, top);
  pen.lineTo(x, bottom);
  pen.stroke();
}
