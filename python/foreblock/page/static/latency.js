// How long the service takes to make a flashblock readable: the distribution of its own histogram
// (`foreblock_flashblock_readable_seconds` of /metrics) since its start.

import { el, say, svg } from "./dom.js";
import { trim } from "./format.js";

const EVERY = 5_000, FEWEST = 6; // buckets
const WIDTH = 300, HEIGHT = 44;
const LINE = /^foreblock_flashblock_readable_seconds_bucket\{network="([^"]+)",le="([^"]+)"\} (\d+)$/gm;

/** Numbers of flashblocks below each limit in seconds, by network. */
export function readBuckets(text) {
  const found = new Map();
  for (const [, network, limit, count] of text.matchAll(LINE)) {
    if (!found.has(network)) found.set(network, []);
    found.get(network).push({ limit: limit === "+Inf" ? Infinity : Number(limit), count: Number(count) });
  }
  return found;
}

/** The time below which a part of all lies, by linear interpolation in its bucket; null without any. */
export function quantile(buckets, part) {
  const wanted = part * (buckets.at(-1)?.count ?? 0);
  if (!wanted) return null;
  const at = buckets.findIndex((each) => each.count >= wanted), before = buckets[at - 1] ?? { limit: 0, count: 0 };
  const { limit, count } = buckets[at];
  if (limit === Infinity) return before.limit;
  return before.limit + ((limit - before.limit) * (wanted - before.count)) / (count - before.count || 1);
}

/** Read the metrics of the service now and then, while the page is visible. */
export function watchLatency(address, networks) {
  const charts = new Map(networks.map((network) => [network.name, network.latencyChart]));
  const read = async () => {
    if (document.hidden) return setTimeout(read, EVERY);
    const reply = await fetch(address).catch(() => null);
    if (reply && !reply.ok) return null; // metrics are off, or at another address
    for (const [name, buckets] of reply ? readBuckets(await reply.text()) : []) charts.get(name)?.draw(buckets);
    return setTimeout(read, EVERY);
  };
  read();
}

export function makeLatency() {
  const value = el("b"), high = el("small"), bars = svg("g");
  const node = el("figure", { class: "chart readable", hidden: true },
    el("figcaption", { title: "From when a flashblock is closed or received until it is readable, as the service measures it" },
      el("span", {}, "Pre-confirmation"), el("span", { class: "value" }, value, " ", el("span", {}, "ms")), high),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": "Distribution of the time until a flashblock is readable" }, bars));
  const draw = (buckets) => {
    if (!buckets.at(-1).count) return;
    node.hidden = false;
    const milliseconds = (part) => trim(1000 * quantile(buckets, part));
    say(value, milliseconds(0.5));
    say(high, `p99 ${milliseconds(0.99)}`);
    const all = buckets.map((each, at) => each.count - (buckets[at - 1]?.count ?? 0)), top = Math.max(...all);
    const counts = all.slice(0, Math.max(FEWEST, all.findLastIndex((each) => each > 0) + 1)); // the rest is empty
    const step = WIDTH / counts.length;
    bars.replaceChildren(...counts.map((count, at) => {
      const height = count ? Math.max(2, (count / top) * (HEIGHT - 4)) : 0, limit = buckets[at].limit;
      const label = `${limit === Infinity ? `more than ${trim(1000 * buckets[at - 1].limit)}` : `up to ${trim(1000 * limit)}`} ms: ${count}`;
      return svg("rect", { x: at * step + 3, width: step - 6, y: HEIGHT - height, height }, svg("title", {}, label));
    }));
  };
  return { node, draw };
}
