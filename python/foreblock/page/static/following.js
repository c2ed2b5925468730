// Follow a network: by subscription, or by requests over HTTP.
//
// A notification of a flashblock has its index, the header of the block so far, and its newest
// transactions, so it stays short however large the block is.

import { RpcError } from "./connection.js";
import { hex, number } from "./format.js";
import { requestFlashblocks } from "./history.js";

const NEWEST = 5; // transactions of a flashblock that are listed
const POLL = 400; // ms between two questions
const NEXT = 4;

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Follow a network until its next round; raises when the connection is lost. */
export async function follow(network, state, round) {
  if (state !== "live") {
    poll(network, round);
    return;
  }
  await network.connection.subscribe(["newHeads"], (header) => network.sealed(header));
  await network.connection.subscribe(["newFlashblocks", { newest: NEWEST }], (block) => {
    const index = number(block.flashblockIndex), count = number(block.transactionCount);
    network.flashblock(block, [{ index, count, gas: number(block.gasUsed) }], block.transactions);
  });
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

/** Request the block in progress once, and the flashblocks since the last request. */
async function look(network) {
  const known = network.blocks.get(network.pending), last = known?.flashblocks.at(-1)?.index ?? -1;
  const pins = known ? Array.from({ length: NEXT }, (_, at) => pin(hex(known.number), last + 1 + at)) : [];
  const [header, ...counts] = await network.askAll(["eth_getBlockByNumber", "pending", false], ...pins);
  if (header instanceof RpcError) throw header;
  header.number ??= hex(network.latest + 1); // the service may be set to leave it out
  if (number(header.number) <= network.latest || header.hash === known?.hash) return;
  const count = header.transactions.length, grown = known && isGrown(known, header);
  const first = grown ? last + 1 : 0;
  const found = (grown ? before(counts).map((each) => ({ count: each, gas: null })) : await requestFlashblocks(network, header.number))
    .filter((each) => each.count <= count);
  const steps = (found.length ? found : [{ gas: null }]).map((each, at) => ({ ...each, index: first + at }));
  Object.assign(steps.at(-1), { count, gas: number(header.gasUsed) });
  const newest = header.transactions.slice(grown ? known.transactions : 0).slice(-NEWEST);
  network.flashblock(header, steps, newest.map((hash) => ({ hash })));
  network.blocks.get(network.pending).lastHash = header.transactions.at(-1);
  await describe(network);
}

/** True if a block in progress extends the known one: same parent, same beginning. */
const isGrown = (known, header) =>
  known.number === number(header.number) && known.parent === header.parentHash &&
  header.transactions.length >= known.transactions && header.transactions[known.transactions - 1] === known.lastHash;

/** Request the shown fields of the newest transactions, whose hashes only are known. */
async function describe(network) {
  const bare = network.recent.filter((each) => each.from === undefined).slice(0, NEWEST);
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

/** The counts before the first missing one. */
function before(counts) {
  const end = counts.findIndex((each) => each instanceof RpcError || each === null);
  return (end < 0 ? counts : counts.slice(0, end)).map(number);
}
