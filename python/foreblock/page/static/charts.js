// Small charts of the last minutes: one area for each quantity, one point for each second.

import { el, say, svg } from "./dom.js";
import { compact, trim } from "./format.js";
import { SECONDS } from "./network.js";

const WIDTH = 300, HEIGHT = 44;
const LEAST = 10; // seconds that a chart is wide

const KINDS = [
  { series: "latency", name: "Request time", unit: "ms", show: trim, floor: 2 },
  { series: "rate", name: "Transactions", unit: "/s", show: trim, floor: 5, smooth: 2 },
  { series: "gas", name: "Gas", unit: "/s", show: compact, floor: 1e5, smooth: 2 },
  { series: "fee", name: "Base fee", unit: "gwei", show: trim, floor: 0.1 },
];

export function makeCharts(network) {
  const charts = KINDS.map((kind) => makeChart(network, kind));
  return {
    node: el("div", { class: "charts" }, charts.map((chart) => chart.node)),
    draw: () => charts.forEach((chart) => chart.draw()),
  };
}

function makeChart(network, kind) {
  const area = svg("path", { class: "area" }), line = svg("path", { class: "line" });
  const cross = svg("line", { class: "cross", y1: 0, y2: HEIGHT, visibility: "hidden" });
  const picture = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
    "aria-label": `${kind.name} over the last ${SECONDS / 60} minutes`,
  }, area, line, cross);
  const value = el("b"), unit = el("span", {}, kind.unit), top = el("small");
  const node = el("figure", { class: `chart ${kind.series}` },
    el("figcaption", {}, el("span", {}, kind.name), el("span", { class: "value" }, value, " ", unit), top), picture);
  let pointed = null;

  const draw = () => {
    const all = smooth(network.series[kind.series].values, kind.smooth ?? 1);
    const values = all.slice(Math.max(0, all.findIndex((each) => each !== null)));
    const known = values.filter((each) => each !== null);
    const high = Math.max(kind.floor, ...known) * 1.08;
    const wide = Math.max(LEAST, values.length) - 1; // it begins full and widens
    const steps = values.map((each, at) => [WIDTH - (values.length - 1 - at) * (WIDTH / wide), each]);
    const drawn = runs(steps).map((run) => (run.length > 1 ? run : [[run[0][0] - WIDTH / wide, run[0][1]], ...run])).map((run) => run.map(([x, y]) => `${x.toFixed(1)} ${(HEIGHT - (y / high) * HEIGHT).toFixed(1)}`));
    line.setAttribute("d", drawn.map((run) => `M${run.join("L")}`).join(""));
    area.setAttribute("d", drawn.map((run) => `M${run[0].split(" ")[0]} ${HEIGHT}L${run.join("L")}L${run.at(-1).split(" ")[0]} ${HEIGHT}Z`).join(""));
    const at = pointed === null ? values.length - 1 : values.length - 1 - Math.round((1 - pointed) * wide);
    const shown = values[at] ?? null;
    say(value, shown === null ? "–" : kind.show(shown));
    say(top, pointed === null ? `max ${known.length ? kind.show(Math.max(...known)) : "–"}` : `${values.length - 1 - at} s ago`);
    cross.setAttribute("visibility", pointed === null ? "hidden" : "visible");
    if (pointed !== null) for (const end of ["x1", "x2"]) cross.setAttribute(end, pointed * WIDTH);
  };
  picture.addEventListener("pointermove", (event) => {
    pointed = Math.min(1, Math.max(0, event.offsetX / picture.clientWidth));
    draw();
  });
  picture.addEventListener("pointerleave", () => {
    pointed = null;
    draw();
  });
  return { node, draw };
}

/** The mean of each value and those just before it; gaps stay gaps. */
function smooth(values, width) {
  if (width < 2) return values;
  return values.map((each, at) => {
    const near = values.slice(Math.max(0, at - width + 1), at + 1).filter((one) => one !== null);
    return each === null ? null : near.reduce((sum, one) => sum + one, 0) / near.length;
  });
}

/** Stretches without a gap. */
function runs(steps) {
  const found = [];
  let run = [];
  for (const [x, y] of steps) {
    if (y === null) {
      if (run.length) found.push(run);
      run = [];
    } else run.push([x, y]);
  }
  return run.length ? [...found, run] : found;
}
