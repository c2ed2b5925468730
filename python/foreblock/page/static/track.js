// The time line of a network: its last blocks, and in each its flashblocks in order of arrival.
//
// The height of a bar is the gas of its flashblock; empty slots show how many
// flashblocks earlier blocks had.

import { el, keyed, say } from "./dom.js";
import { compact, grouped, plural } from "./format.js";

const MOST_BARS = 64;
const CLIP = 3; // a bar is clipped above this many times the height that 95 % of them have

export function makeTrack(network) {
  const node = el("div", { class: "track", role: "list", "aria-label": `Blocks of ${network.name} on a time line` });
  let blocks = 6;
  new ResizeObserver(([{ contentRect: { width } }]) => {
    blocks = width < 500 ? 4 : width < 1150 ? 6 : 10;
    draw(node, network, blocks);
  }).observe(node);
  return { node, draw: () => draw(node, network, blocks) };
}

function draw(node, network, count) {
  const blocks = network.lastBlocks(count).reverse();
  const usual = Math.max(...blocks.map((block) => (network.isSealed(block.number) ? block.flashblocks.length : 0)), 0);
  const gas = blocks.flatMap((block) => gains(block, usual).map((each) => each.gas)).sort((a, b) => a - b);
  const most = gas.at(-1) ?? 0, common = gas[Math.ceil(0.95 * gas.length) - 1] ?? 0;
  const scale = Math.max(1, common ? Math.min(most, CLIP * common) : most);
  keyed(node, blocks, (block) => block.number, (block) => makeSlot(network, block, usual, scale),
    (slot, block) => update(slot, network, block, usual, scale));
}

/** The additions of each flashblock; of a block that arrived whole, the mean if it had the usual number. */
function gains(block, usual) {
  if (!block.flashblocks.length) {
    return [{ index: null, transactions: block.transactions ?? 0, all: block.gasUsed, gas: block.gasUsed / Math.max(usual, 1) }];
  }
  const shown = block.flashblocks.slice(0, MOST_BARS);
  return shown.map((each, at) => {
    const before = shown[at - 1], transactions = each.count - (before?.count ?? 0);
    const known = each.gas !== null && (at === 0 || before.gas !== null);
    // Of flashblocks older than the page only the transactions are known.
    const gas = known ? each.gas - (before?.gas ?? 0) : (block.gasUsed * transactions) / (block.transactions || 1);
    return { index: each.index, transactions, gas: Math.max(0, gas), at: each.at, seconds: since(block, each), dropped: each.dropped };
  });
}

const since = (block, flashblock) =>
  flashblock.at === null || block.startedAt === null ? null : (flashblock.at - block.startedAt) / 1000;

function makeSlot(network, block, ...rest) {
  const slot = el("div", { class: "slot", role: "listitem" },
    el("div", { class: "bars" }),
    el("a", { class: "label" }, el("b"), el("span")));
  update(slot, network, block, ...rest);
  return slot;
}

function update(slot, network, block, usual, scale) {
  const sealed = network.isSealed(block.number), [bars, label] = slot.children;
  slot.classList.toggle("sealed", sealed);
  slot.classList.toggle("whole", !block.flashblocks.length);
  slot.classList.toggle("replaces", block.replaces === true);
  const found = gains(block, usual);
  const places = sealed ? found.length : Math.max(usual, found.length);
  const shown = Array.from({ length: places }, (_, at) => found[at] ?? { index: at, empty: true });
  // A flashblock may become known late, or replace another one.
  keyed(bars, shown, (each) => `${each.index} ${each.empty ? "empty" : each.transactions} ${each.dropped ? "dropped" : ""}`,
    (each) => makeBar(network, block, each, scale), (bar, each) => size(bar, each, scale));
  label.href = `#/${network.name}/block/${block.number}`;
  say(label.firstChild, grouped(block.number));
  say(label.lastChild, `${grouped(block.transactions ?? 0)} tx`);
}

function makeBar(network, block, each, scale) {
  if (each.empty) return el("i", { class: "empty" });
  const when = each.seconds === null || each.seconds === undefined ? "" : ` · after ${each.seconds.toFixed(2)} s`;
  const what = each.index === null ? `block ${grouped(block.number)}` : `flashblock ${each.index}`;
  const title = `${each.dropped ? "dropped " : ""}${what} · ${plural(each.transactions, "transaction")} · ${compact(each.all ?? each.gas)} gas${when}`;
  const place = each.index === null ? block.number : `${block.number}.${each.index}`;
  const bar = el("a", { class: each.dropped ? "dropped" : null, title, href: `#/${network.name}/block/${place}`, tabindex: "-1", "aria-label": title }, el("i"));
  size(bar, each, scale);
  return bar;
}

function size(bar, each, scale) {
  if (each.empty) return;
  const height = `${Math.min(100, Math.max(4, Math.round((100 * each.gas) / scale)))}%`;
  bar.classList.toggle("clipped", each.gas > scale);
  if (bar.firstChild.style.height !== height) bar.firstChild.style.setProperty("height", height);
}
