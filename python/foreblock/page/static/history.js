// The past of a network when the page is opened: flashblocks of its last blocks, rates of the last
// minute, and its newest transactions.

import { RpcError } from "./connection.js";
import { hex, number } from "./format.js";

export const FILLED = 60; // seconds of the charts
const DRAWN = 5; // sealed blocks whose flashblocks are requested
const AT_ONCE = 16, MOST = 256; // flashblocks
const LISTED = 12; // transactions
const LONG = 30; // seconds after which a block is no continuous growth

/** The flashblocks of a block as { index, count, gas }, while the service keeps them. */
export async function requestFlashblocks(network, blockNumber) {
  const found = [];
  while (found.length < MOST) {
    const pins = Array.from({ length: AT_ONCE }, (_, at) => ({ blockNumber, flashblockIndex: hex(found.length + at) }));
    const answers = await network.askAll(...pins.flatMap((pin) => [
      ["eth_getBlockTransactionCountByNumber", pin], ["erigon_getHeaderByNumber", pin]]));
    for (let at = 0; at < answers.length; at += 2) {
      const [count, header] = answers.slice(at, at + 2);
      if (!count || !header || count instanceof RpcError || header instanceof RpcError) return found;
      found.push({ index: found.length, count: number(count), gas: number(header.gasUsed) });
    }
  }
  return found;
}

/** Fill in the flashblocks of the last sealed blocks, and the list of transactions. */
export async function fillBlocks(network, round) {
  const current = () => round === network.round;
  await listTransactions(network, network.lastBlocks(LISTED), LISTED, current);
  const [newest, ...older] = network.lastBlocks(DRAWN + 1).filter((block) => network.isSealed(block.number) && block.number > 0);
  // A service without flashblocks has none of the newest block either.
  if (!newest || !(await fillBlock(network, newest, current))) return;
  await Promise.all(older.map((block) => fillBlock(network, block, current)));
}

async function fillBlock(network, block, current) {
  if (block.flashblocks.length) return true;
  const { hash, transactions } = block;
  const found = (await requestFlashblocks(network, hex(block.number))).filter((each) => each.count <= transactions);
  if (!current() || block.hash !== hash || !found.length) return found.length > 0;
  block.flashblocks = found.map((each) => ({ ...each, at: null }));
  network.changed("flashblock");
  return true;
}

/** Add the last transactions of blocks, the newest block first, to the list. */
export async function listTransactions(network, blocks, most, current = () => true) {
  const wanted = [];
  for (const block of blocks) {
    for (let at = (block.transactions ?? 0) - 1; at >= 0 && wanted.length < most; at -= 1) wanted.push([block, at]);
  }
  if (!wanted.length) return;
  const found = await network.askAll(...wanted.map(([block, at]) => ["eth_getTransactionByBlockHashAndIndex", block.hash, hex(at)]));
  if (!current()) return;
  const listed = found.flatMap((each, at) => (each && !(each instanceof RpcError)
    ? [{ hash: each.hash, from: each.from, to: each.to, value: each.value, type: each.type, input: each.input, block: wanted[at][0].number, at: wanted[at][1] }]
    : []));
  network.list(listed);
}

/** Rates and fees of the last minute, from sealed blocks and the block in progress. */
export function fillSeries(network) {
  const sealed = network.lastBlocks(FILLED + 1).filter((block) => network.isSealed(block.number)).reverse();
  const last = sealed.at(-1), pending = network.blocks.get(network.pending);
  const now = Math.max(Date.now() / 1000, last.timestamp);
  const place = (timestamp) => FILLED - 1 - Math.floor(now - timestamp);
  const grown = pending && !network.isSealed(pending.number) ? [...sealed, { ...pending, timestamp: Math.floor(now) }] : sealed;
  // The time of a genesis block may be long ago; nothing happened until the block after it.
  const first = grown[1]?.timestamp - grown[0].timestamp > LONG ? grown[1] : grown[0];
  const begun = Math.max(0, place(first.timestamp) + 1);
  const empty = () => Array.from({ length: FILLED }, (_, at) => (at < begun ? null : 0));
  const rate = empty(), gas = empty(), fee = empty();
  grown.slice(1).forEach((block, at) => {
    const seconds = block.timestamp - grown[at].timestamp, span = seconds > LONG ? 1 : Math.max(1, seconds);
    for (let second = 0; second < span; second += 1) {
      const to = place(block.timestamp - second);
      if (to < begun || to >= FILLED) continue;
      rate[to] += (block.transactions ?? 0) / span;
      gas[to] += block.gasUsed / span;
    }
    if (block.baseFee !== null) fee.fill(block.baseFee / 1e9, Math.max(begun, place(block.timestamp)));
  });
  if (first.baseFee !== null) fee.forEach((each, at) => each === 0 && (fee[at] = first.baseFee / 1e9));
  network.series.rate.fill(rate);
  network.series.gas.fill(gas);
  network.series.fee.fill(last.baseFee === null ? fee.map(() => null) : fee);
}
