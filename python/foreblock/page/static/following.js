// How a network is followed: by subscription, by questions at the page's own pace, or over HTTP.
//
// A notification of a flashblock has the whole block in progress with full transactions. Where
// blocks are large, a tab that is slow would fall behind what is sent to it. Then the page asks
// for hashes instead, the next time when it has read the last answer, so that nothing piles up.

import { RpcError } from "./connection.js";
import { hex, number } from "./format.js";

const LARGE = 128 * 1024; // bytes of a notification above which the page asks instead
const SMALL = 60; // transactions of a sealed block below which it subscribes again
const PACE = 150, POLL = 400; // ms between two questions
const NEXT = 4, FLASHBLOCKS = 256, AT_ONCE = 16;

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Follow a network until its next round; raises when the connection is lost. */
export async function follow(network, state, round) {
  if (state !== "live") {
    poll(network, round);
    return;
  }
  await network.connection.subscribe("newHeads", (header) => network.sealed(header));
  await subscribe(network, round);
}

async function subscribe(network, round) {
  let asks = false;
  const id = await network.connection.subscribe("newFlashblocks", (block, size) => {
    if (asks) return;
    block.number ??= hex(network.latest + 1); // the service may be set to leave it out
    network.flashblock(block);
    asks = size > LARGE;
    if (asks) ask(network, round, id);
  });
}

async function ask(network, round, id) {
  try {
    await network.connection.unsubscribe(id);
    while (round === network.round) {
      await look(network);
      const block = network.blocks.get(network.latest);
      if (block && block.transactions < SMALL) return await subscribe(network, round);
      await pause(PACE);
    }
  } catch {
    // The connection was lost.
  }
  return null;
}

async function poll(network, round) {
  while (round === network.round) {
    try {
      const latest = await network.ask("eth_getBlockByNumber", "latest", false);
      if (latest.hash !== network.blocks.get(network.latest)?.hash) network.sealed(latest);
      await look(network);
    } catch {
      network.connection.unreachable();
      return;
    }
    await pause(POLL);
  }
}

/** Ask once for the block in progress, and for the flashblocks that may have come. */
async function look(network) {
  const known = network.blocks.get(network.pending), last = known?.flashblocks.at(-1)?.index ?? -1;
  const pins = known ? Array.from({ length: NEXT }, (_, at) => pin(hex(known.number), last + 1 + at)) : [];
  const [header, ...counts] = await network.askAll(["eth_getBlockByNumber", "pending", false], ...pins);
  if (header instanceof RpcError) throw header;
  header.number ??= hex(network.latest + 1);
  if (number(header.number) <= network.latest || header.hash === known?.hash) return;
  const same = known && number(header.number) === known.number && header.parentHash === known.parent;
  const found = same ? before(counts) : await flashblockCounts(network, header.number);
  const first = same ? last + 1 : 0;
  const steps = found.map((count, at) => ({ index: first + at, count, gas: null }))
    .filter((step) => step.count <= header.transactions.length);
  if (steps.length) steps.at(-1).gas = number(header.gasUsed);
  network.flashblock(header, steps.length ? steps : null);
  await describe(network);
}

/** Ask for what is shown of the newest transactions, of which only the hashes are known. */
async function describe(network) {
  const bare = network.recent.filter((each) => each.from === undefined).slice(0, 5);
  if (!bare.length) return;
  const found = await network.askAll(...bare.map((each) => ["eth_getTransactionByHash", each.hash]));
  found.forEach((each, at) => {
    if (!each || each instanceof RpcError) return;
    const { from, to, value, type } = each;
    Object.assign(bare[at], { from, to, value, type });
  });
  network.changed("flashblock");
}

const pin = (blockNumber, index) =>
  ["eth_getBlockTransactionCountByNumber", { blockNumber, flashblockIndex: hex(index) }];

/** The counts before the first that is none. */
function before(counts) {
  const end = counts.findIndex((each) => each instanceof RpcError || each === null);
  return (end < 0 ? counts : counts.slice(0, end)).map(number);
}

/** Transactions of a block after each of its flashblocks, while they are kept. */
export async function flashblockCounts(network, block) {
  const found = [];
  while (found.length < FLASHBLOCKS) {
    const counts = await network.askAll(...Array.from({ length: AT_ONCE }, (_, at) => pin(block, found.length + at)));
    const known = before(counts);
    found.push(...known);
    if (known.length < counts.length) break;
  }
  return found;
}
