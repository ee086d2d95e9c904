// The map: every node a square, by zone and pool, coloured by one measure. No library draws
// thousands of nodes as one picture that is read by keyboard too, so this one is our own.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./dom.js";
import { number, plural } from "./format.js";
import { colour, useDark } from "./theme.js";

const TILES_MAX = { wide: 60, narrow: 16 };
const CELL_MAX = 30;
const CELL_MIN = 5;
const ZONE_LINE = 24;
const POOL_LINE = 18;
const SPACE = 14;
const LABEL_MIN = 56;
const STOPS = {
  light: ["#e6eef5", "#a9cfe6", "#5fa2cf", "#2b6cac", "#173f7a", "#0a1f4d"],
  dark: ["#1f2a37", "#26486c", "#2f6ea6", "#4f9bd6", "#8fc7f0", "#dff1ff"],
};

/** The colour of a value between 0 and 1. */
export function shade(value, isDark) {
  const stops = isDark ? STOPS.dark : STOPS.light;
  const at = Math.min(1, Math.max(0, value)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at));
  const parts = [1, 3, 5].map((from) => {
    const [one, other] = [low, low + 1].map((i) => parseInt(stops[i].slice(from, from + 2), 16));
    return Math.round(one + (other - one) * (at - low));
  });
  return `rgb(${parts})`;
}

/** Rows of nodes that belong together: zones with pools, in the order of the view. */
function blocksOf(view) {
  const { zones, pools } = view.nodes;
  const found = [];
  for (let row = 0; row < zones.length; row++) {
    const zone = found.at(-1);
    const block = zone?.blocks.at(-1);
    if (zone?.zone !== zones[row]) found.push({ zone: zones[row], blocks: [{ pool: pools[row], rows: [row] }] });
    else if (block.pool !== pools[row]) zone.blocks.push({ pool: pools[row], rows: [row] });
    else block.rows.push(row);
  }
  return found;
}

/** Place every node: x and y per row, the size of a square, the labels, and the total height. */
function layout(view, width) {
  const count = view.nodes.names.length;
  const isTiled = count <= (width < 600 ? TILES_MAX.narrow : TILES_MAX.wide);
  const perLine = Math.max(2, Math.floor(width / 150));
  const tall = width < 600 ? 620 : 460;
  const side = Math.floor(Math.sqrt((width * tall) / Math.max(1, count)) * 0.92);
  const cell = Math.min(CELL_MAX, Math.max(CELL_MIN, side));
  const [w, h, gap] = isTiled ? [width / perLine - SPACE, 46, 6] : [cell, cell, cell > 9 ? 2 : 1];
  const plan = { x: new Float64Array(count), y: new Float64Array(count), w, h, isTiled, labels: [], height: 0 };
  for (const { zone, blocks } of blocksOf(view)) {
    const name = view.zones[zone] || (view.zones.length > 1 ? "no zone" : "");
    if (name) {
      const nodes = blocks.reduce((sum, block) => sum + block.rows.length, 0);
      plan.labels.push({ text: `${name} · ${plural(nodes, "node")}`, x: 0, y: plan.height + 15, width, isZone: true });
      plan.height += ZONE_LINE;
    }
    for (const shelf of shelves(blocks, width, w)) placeShelf(plan, view.pools, shelf, width, gap);
    plan.height += SPACE / 2;
  }
  return plan;
}

/** Pools that stand side by side. */
function shelves(blocks, width, w) {
  const least = Math.max(w, LABEL_MIN) + SPACE;
  const perShelf = Math.max(1, Math.floor((width + SPACE) / least));
  const count = Math.ceil(blocks.length / perShelf);
  const each = Math.ceil(blocks.length / count);
  return Array.from({ length: count }, (_, at) => blocks.slice(at * each, (at + 1) * each));
}

/** Place pools side by side, with the fewest lines that fit the width. */
function placeShelf(plan, pools, blocks, width, gap) {
  const [wide, high] = [plan.w + gap, plan.h + gap];
  const widthOf = (block, lines) => Math.max(Math.ceil(block.rows.length / lines) * wide - gap, blocks.length > 1 ? LABEL_MIN : 0);
  const total = (lines) => blocks.reduce((sum, block) => sum + widthOf(block, lines), (blocks.length - 1) * SPACE);
  const most = Math.max(...blocks.map((block) => block.rows.length));
  let lines = 1;
  while (lines < most && total(lines) > width) lines += 1;
  const hasNames = blocks.some((block) => pools[block.pool]);
  const top = plan.height + (hasNames ? POOL_LINE : 0);
  let left = 0;
  for (const block of blocks) {
    const columns = Math.ceil(block.rows.length / lines);
    const label = pools[block.pool] || (hasNames ? "no pool" : "");
    if (label) plan.labels.push({ text: label, x: left, y: plan.height + 12, width: widthOf(block, lines) });
    block.rows.forEach((row, at) => {
      plan.x[row] = left + (at % columns) * wide;
      plan.y[row] = top + Math.floor(at / columns) * high;
    });
    left += widthOf(block, lines) + SPACE;
  }
  plan.height = top + lines * high + SPACE / 2;
}

function draw(canvas, width, view, measure, plan, isDark, faded, selected, focused) {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(plan.height * ratio);
  canvas.style.height = `${plan.height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.clearRect(0, 0, width, plan.height);
  const [text, dim, rule, bad, mark] = ["--text", "--dim", "--rule", "--bad", "--mark"].map(colour);
  for (const label of plan.labels) {
    pen.font = label.isZone ? "600 13px system-ui, sans-serif" : "12px system-ui, sans-serif";
    pen.fillStyle = label.isZone ? text : dim;
    pen.fillText(shortened(pen, label.text, label.width), label.x, label.y);
  }
  const { names, cordoned, ready } = view.nodes;
  for (let row = 0; row < names.length; row++) {
    const [x, y] = [plan.x[row], plan.y[row]];
    const share = measure.share(row);
    pen.globalAlpha = faded && faded[row] ? 0.15 : 1;
    pen.fillStyle = share === null ? rule : shade(share, isDark);
    if (share === null && plan.isTiled) outline(pen, x, y, plan.w, plan.h, rule, 1);
    else if (share === null) pen.fillRect(x + plan.w / 4, y + plan.h / 2 - 1, plan.w / 2, 2);
    else pen.fillRect(x, y, plan.w, plan.h);
    if (cordoned[row]) stripe(pen, x, y, plan.w, plan.h, colour(share > 0.5 ? "--back" : "--text"));
    if (!ready[row]) outline(pen, x, y, plan.w, plan.h, bad, Math.min(4, Math.max(2, plan.w / 9)));
    if (plan.isTiled) {
      const isLight = share !== null && share > 0.45 !== isDark;
      pen.fillStyle = share === null ? text : isLight ? "#fff" : isDark && share > 0.45 ? "#06121f" : text;
      pen.font = "600 12px system-ui, sans-serif";
      pen.fillText(shortened(pen, names[row], plan.w - 12, true), x + 6, y + 18);
      pen.font = "12px system-ui, sans-serif";
      pen.fillText(shortened(pen, measure.text(row), plan.w - 12), x + 6, y + 36);
    }
  }
  pen.globalAlpha = 1;
  if (selected >= 0) outline(pen, plan.x[selected] - 1, plan.y[selected] - 1, plan.w + 2, plan.h + 2, mark, 3);
  if (focused >= 0) outline(pen, plan.x[focused] - 2, plan.y[focused] - 2, plan.w + 4, plan.h + 4, text, 2);
}

function stripe(pen, x, y, w, h, style) {
  pen.strokeStyle = style;
  pen.lineWidth = Math.max(1, Math.min(w, h) / 10);
  pen.beginPath();
  const [side, from] = [Math.min(w, h), x + w - Math.min(w, h)];
  pen.moveTo(from, y + h);
  pen.lineTo(from + side, y + h - side);
  pen.moveTo(from + side / 2, y + h);
  pen.lineTo(from + side, y + h - side / 2);
  pen.stroke();
}

function outline(pen, x, y, w, h, style, thickness) {
  pen.strokeStyle = style;
  pen.lineWidth = thickness;
  pen.strokeRect(x + thickness / 2, y + thickness / 2, w - thickness, h - thickness);
}

/** A text that fits a width; without its beginning if the end tells names apart. */
function shortened(pen, text, width, keepsEnd = false) {
  if (pen.measureText(text).width <= width) return text;
  let part = text;
  while (part && pen.measureText(`${part}…`).width > width) part = keepsEnd ? part.slice(1) : part.slice(0, -1);
  return keepsEnd ? `…${part}` : `${part}…`;
}

/** The next node in the direction of an arrow key. */
function neighbour(plan, row, key, count) {
  if (row < 0) return 0;
  if (key === "ArrowRight") return Math.min(count - 1, row + 1);
  if (key === "ArrowLeft") return Math.max(0, row - 1);
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  const sign = key === "ArrowDown" ? 1 : -1;
  let [best, distance] = [row, Infinity];
  for (let other = 0; other < count; other++) {
    const down = (plan.y[other] - plan.y[row]) * sign;
    if (down <= 0) continue;
    const far = down * 4 + Math.abs(plan.x[other] - plan.x[row]);
    if (far < distance) [best, distance] = [other, far];
  }
  return best;
}

/**
 * The map of a view.
 *
 * measure: what the colour means, see measures.js; faded: whether each row is faded, or null;
 * selected: a row, or -1; onSelect: called with a row; tip: the text for a row.
 */
export function ClusterMap({ view, measure, faded, selected, onSelect, tip }) {
  const isDark = useDark();
  const canvas = useRef(null);
  const [width, setWidth] = useState(0);
  const [hovered, setHovered] = useState(-1);
  const [wasFocused, setFocused] = useState(-1);
  const count = view.nodes.names.length;
  // Nodes may have gone since.
  const focused = wasFocused < count ? wasFocused : -1;
  const plan = useMemo(() => (width ? layout(view, width) : null), [view.nodes.names, width]);
  useLayoutEffect(() => {
    const measureWidth = () => setWidth(canvas.current.parentElement.clientWidth);
    const observer = new ResizeObserver(measureWidth);
    observer.observe(canvas.current.parentElement);
    measureWidth();
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (plan) draw(canvas.current, width, view, measure, plan, isDark, faded, selected, focused);
  });
  const rowAt = (event) => {
    for (let row = 0; plan && row < count; row++) {
      const [dx, dy] = [event.offsetX - plan.x[row], event.offsetY - plan.y[row]];
      if (dx >= 0 && dx < plan.w + 1 && dy >= 0 && dy < plan.h + 1) return row;
    }
    return -1;
  };
  const onKeyDown = (event) => {
    if (event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End") {
      setFocused(neighbour(plan, focused >= 0 ? focused : selected, event.key, count));
    } else if (event.key === "Enter" || event.key === " ") {
      if (focused >= 0) onSelect(focused);
    } else if (event.key === "Escape") {
      onSelect(-1);
    } else return;
    event.preventDefault();
  };
  const shown = hovered >= 0 && hovered < count ? hovered : -1;
  return html`<div class="map">
    <canvas
      ref=${canvas}
      tabindex="0"
      role="application"
      aria-roledescription="map of nodes"
      aria-label=${`Map of ${number(count)} nodes, coloured by ${measure.label}. Arrow keys go from node to node, Enter shows one. The table below has the same.`}
      onMouseMove=${(event) => setHovered(rowAt(event))}
      onMouseLeave=${() => setHovered(-1)}
      onClick=${(event) => onSelect(rowAt(event))}
      onKeyDown=${onKeyDown}
      onBlur=${() => setFocused(-1)}
    ></canvas>
    ${shown >= 0 &&
    html`<div
      class="tip"
      aria-hidden="true"
      style=${{ left: `${Math.max(0, Math.min(plan.x[shown], width - 220))}px`, top: `${plan.y[shown] + plan.h + 6}px` }}
      >${tip(shown)}</div
    >`}
    <div class="unseen" aria-live="polite">${focused >= 0 ? tip(focused) : ""}</div>
  </div>`;
}

/** What the colours mean, as a bar from the lowest to the highest value; other marks as they occur. */
export function Legend({ view, measure }) {
  const isDark = useDark();
  const stops = [0, 0.2, 0.4, 0.6, 0.8, 1].map((at) => shade(at, isDark));
  const { cordoned, ready } = view.nodes;
  const marks = [
    ["striped", "cordoned", cordoned.filter(Boolean).length],
    ["failed", "not ready", ready.filter((one) => !one).length],
    ["lacking", measure.none ?? "has none", cordoned.filter((_, row) => measure.share(row) === null).length],
  ];
  return html`<div class="legend">
    <span>${measure.low}</span>
    <span class="scale" aria-hidden="true" style=${{ background: `linear-gradient(to right, ${stops})` }}></span>
    <span>${measure.high}</span>
    ${marks.map(
      ([name, text, count]) =>
        count > 0 &&
        html`<span class="key"><span class=${`swatch ${name}`} aria-hidden="true"></span>${text}: ${number(count)}</span>`,
    )}
  </div>`;
}
