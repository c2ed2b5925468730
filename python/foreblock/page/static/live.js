// One network as a column: its head, time line, charts, blocks and transactions.

import { makeCharts } from "./charts.js";
import { el, keyed, say, show } from "./dom.js";
import { amount, compact, duration, grouped, wallClock } from "./format.js";
import { knownCall } from "./known.js";
import { makeLatency } from "./latency.js";
import { shortAddress } from "./names.js";
import { makeTrack } from "./track.js";

const BLOCKS = 12, TRANSACTIONS = 12, EVENTS = 3;
const LEAST = 400; // ms between two drawings of the transactions
const STALE = 4_000; // ms without a flashblock or a block, beyond the time of a block
const STATES = {
  connecting: "connecting", live: "live", polling: "polling over HTTP", lost: "no connection, trying again", paused: "paused",
};

export function makeColumn(network) {
  const track = makeTrack(network), charts = makeCharts(network), latency = makeLatency();
  network.latencyChart = latency;
  charts.node.prepend(latency.node);
  const state = el("span", { class: "state" }), chain = el("span", { class: "chain" });
  const latest = el("a", { class: "place latest", title: "The latest sealed block" });
  const pending = el("a", { class: "place pending", title: "The block in progress and its newest flashblock" });
  const age = el("span", { class: "age", title: "Time since the last flashblock or block" });
  const blocks = el("div", { class: "rows" }), transactions = el("div", { class: "rows" });
  const none = el("p", { class: "empty" });
  const events = el("ol", { class: "events", "aria-label": "Reorganisations and dropped flashblocks", "aria-live": "polite", hidden: true });
  const title = el("h3", {}, "Transactions");
  const listed = el("section", { class: "panel transactions" }, title, transactions, none);
  const node = el("section", { class: "network", "aria-label": `Network ${network.name}`, data: { network: network.name } },
    el("header", {}, el("h2", {}, network.name), chain, state, el("span", { class: "places" }, latest, pending, age)),
    track.node, events, charts.node,
    el("div", { class: "panels" }, el("section", { class: "panel blocks" }, el("h3", {}, "Blocks"), blocks), listed));

  const drawHead = () => {
    const is = network.connection.state, stale = is === "live" && isStale(network);
    node.dataset.state = stale ? "stale" : is;
    say(state, stale ? "not moving" : STATES[is]);
    say(chain, network.chain === undefined ? "" : `chain ${network.chain}`);
    const block = network.blocks.get(network.pending), ahead = block && network.pending > network.latest;
    say(latest, network.latest === null ? "–" : grouped(network.latest));
    latest.href = `#/${network.name}/block/${network.latest ?? "latest"}`;
    pending.hidden = !ahead;
    if (ahead) {
      say(pending, `${grouped(block.number)}.${block.flashblocks.at(-1)?.index ?? 0}`);
      pending.href = `#/${network.name}/block/pending`;
    }
    drawAge();
  };
  const drawAge = () =>
    say(age, network.movedAt === undefined ? "" : `${duration((performance.now() - network.movedAt) / 1000)} ago`);
  const drawTimes = () => {
    const now = Date.now() / 1000;
    for (const each of blocks.querySelectorAll("[data-time]")) say(each, duration(now - each.dataset.time));
  };
  const drawEvents = () => {
    events.hidden = !network.events.length;
    keyed(events, network.events.slice(0, EVENTS), (each) => each.id, (each) =>
      el("li", {}, el("span", { class: "badge" }, each.kind), el("a", { href: `#/${network.name}/block/${each.block}` }, each.text), el("time", {}, wallClock(each.at))));
  };
  const drawBlocks = () => {
    const found = network.lastBlocks(BLOCKS + 1).filter((block) => network.isSealed(block.number)).slice(0, BLOCKS);
    const top = Math.max(...found.map((block) => block.gasUsed), 1);
    keyed(blocks, found, (block) => block.hash, (block) => blockRow(network, block, top),
      (row, block) => {
        say(row.querySelector(".count"), `${grouped(block.transactions ?? 0)} tx`);
        row.querySelector(".meter").style.setProperty("--part", block.gasUsed / top);
      });
  };
  let listedAt = 0, later = 0;
  const drawTransactions = () => {
    // The row under the pointer stays in place.
    if (transactions.matches(":hover")) return;
    if (performance.now() - listedAt < LEAST) {
      clearTimeout(later);
      later = setTimeout(drawTransactions, LEAST);
      return;
    }
    listedAt = performance.now();
    none.hidden = network.recent.length > 0;
    say(none, network.filled ? "No transactions yet." : "Loading…");
    say(title, network.pending === null ? "Transactions" : "Pre-confirmed transactions");
    keyed(transactions, network.recent.slice(0, TRANSACTIONS), (each) => each.hash,
      (each) => transactionRow(network, each), (row, each) => mark(row, network, each));
  };
  // Many events are drawn in one frame, so a slow browser does not fall behind.
  const due = new Set();
  const draw = () => {
    const [all, sealed, second] = ["state", "sealed", "second"].map((what) => due.has(what));
    if (all || sealed || due.has("flashblock")) {
      track.draw();
      drawTransactions();
    }
    if (all || sealed) drawBlocks();
    if (all || due.has("event")) drawEvents();
    if (all || second) charts.draw();
    due.clear();
    drawHead();
    drawTimes();
  };
  network.addEventListener("change", (event) => {
    if (!due.size) requestAnimationFrame(draw);
    due.add(event.detail);
  });
  setInterval(drawAge, 500);
  due.add("state");
  draw();
  return node;
}

function isStale(network) {
  const [last, before] = network.lastBlocks(2);
  const usual = last && before ? Math.max(1, last.timestamp - before.timestamp) * 1000 : 2000;
  return network.movedAt !== undefined && performance.now() - network.movedAt > usual + STALE;
}

function blockRow(network, block, top) {
  const part = block.gasLimit ? Math.round((100 * block.gasUsed) / block.gasLimit) : 0;
  const bar = el("span", { class: "meter", title: `${part} % of the gas limit`, style: { "--part": block.gasUsed / top } });
  return el("a", { class: "row", href: `#/${network.name}/block/${block.number}` },
    el("span", {}, el("span", { class: "number" }, grouped(block.number)), block.replaces ? el("span", { class: "badge", title: "It replaces another block" }, "reorg") : null),
    el("span", { class: "time", data: { time: block.timestamp } }),
    el("span", { class: "count" }, `${grouped(block.transactions ?? 0)} tx`),
    bar,
    el("span", { class: "gas" }, compact(block.gasUsed)));
}

function transactionRow(network, each) {
  const row = el("a", { class: "row", href: `#/${network.name}/tx/${each.hash}` },
    el("span", { class: "place" }),
    el("code", {}, `${each.hash.slice(0, 10)}…`),
    el("span", { class: "way" }), el("span", { class: "value" }));
  mark(row, network, each);
  return row;
}

/** The fields of a listed transaction that may change or become known. */
function mark(row, network, each) {
  const [place, , way, value] = row.children, index = network.indexOf(each);
  say(place, `${grouped(each.block)}${index === undefined ? "" : `.${index}`}`);
  row.classList.toggle("sealed", network.isSealed(each.block));
  row.classList.toggle("dropped", each.dropped === true);
  row.title = each.dropped ? "Dropped: its flashblock or block was replaced" : "";
  if (each.from === undefined) return;
  const to = each.to === null ? "new contract" : shortAddress(network, each.to);
  say(way, each.type === "0x7e" ? `deposit → ${to}` : `${shortAddress(network, each.from)} → ${to}`);
  say(value, each.value && each.value !== "0x0" ? amount(each.value, 4) : knownCall(each.input, each.to)?.name ?? "");
}

/** The columns of all networks. */
export function showNetworks(main, networks) {
  main.dataset.count = networks.length;
  show(main, networks.map(makeColumn));
}
