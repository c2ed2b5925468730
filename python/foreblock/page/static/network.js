// What the page knows of one network: its last blocks, how they grew, and rates over minutes.
//
// Everything is bounded, whatever the chain does: blocks, flashblocks of a block, transactions
// and seconds. Events (`change`) say what to draw again: "state", "flashblock", "sealed", "second".
// How it hears of them is in following.js.

import { Connection, RpcError } from "./connection.js";
import { flashblockCounts, follow } from "./following.js";
import { hex, number } from "./format.js";

export const SECONDS = 300;
const BLOCKS = 300, SHOWN_AT_START = 14, FLASHBLOCKS = 256, RECENT = 24, NEW_AT_ONCE = 5;

const hashOf = (transaction) => transaction?.hash ?? transaction;

/** Whether a block in progress is the known one with more: same parent, and the same beginning. */
const extendsBlock = (known, header) =>
  known.parent === header.parentHash && header.transactions.length >= known.transactions &&
  hashOf(header.transactions[known.transactions - 1]) === known.lastHash;

/** The last values of a quantity, one for each second. */
class Series {
  values = [];

  add(value) {
    this.values.push(value);
    if (this.values.length > SECONDS) this.values.shift();
  }

  get last() {
    return this.values.at(-1) ?? null;
  }
}

export class Network extends EventTarget {
  constructor({ name, socket, http }) {
    super();
    this.name = name;
    this.connection = new Connection(socket, http, this);
    this.series = { latency: new Series(), rate: new Series(), gas: new Series(), fee: new Series() };
    this.round = 0; // of connecting: what comes late from an earlier one is dropped
    this.#reset();
  }

  #reset() {
    this.blocks = new Map(); // by number, oldest first
    this.recent = []; // transactions, newest first
    this.pending = null; // number
    this.latest = null;
    this.counted = { gas: 0, transactions: 0 };
  }

  start() {
    this.connection.open();
    this.seconds = setInterval(() => this.#second(), 1000);
  }

  get ready() {
    return this.connection.state === "live" || this.connection.state === "polling";
  }

  ask = (...request) => this.connection.ask(...request);
  askAll = (...requests) => this.connection.askAll(...requests);

  changed(what) {
    this.dispatchEvent(new CustomEvent("change", { detail: what }));
  }

  // Connecting.

  async opened(state) {
    const round = ++this.round;
    this.#reset();
    try {
      await this.#load();
      if (round === this.round) await follow(this, state, round);
    } catch {
      // The connection ended meanwhile; the next one begins anew.
    }
    this.changed("state");
  }

  closed() {
    this.round += 1;
    this.changed("state");
  }

  async #load() {
    const [chain, client, latest, pending] = await this.askAll(
      ["eth_chainId"], ["web3_clientVersion"], ["eth_getBlockByNumber", "latest", false],
      ["eth_getBlockByNumber", "pending", false],
    );
    if (latest instanceof RpcError) throw latest;
    this.chain = number(chain);
    this.client = client;
    const last = number(latest.number), first = Math.max(0, last - SHOWN_AT_START + 1);
    const numbers = Array.from({ length: last - first + 1 }, (_, at) => hex(first + at));
    const headers = await this.askAll(...numbers.map((each) => ["erigon_getHeaderByNumber", each]));
    const counts = await this.askAll(...numbers.map((each) => ["eth_getBlockTransactionCountByNumber", each]));
    headers.forEach((header, at) => {
      if (header && !(header instanceof RpcError)) this.#keep(header, number(counts[at]));
    });
    this.latest = last;
    if (pending && pending.parentHash === latest.hash) pending.number ??= hex(last + 1);
    if (pending && number(pending.number) > last) await this.#resume(pending);
    this.changed("state");
  }

  // Blocks.

  #keep(header, transactions) {
    const at = number(header.number);
    const block = this.blocks.get(at) ?? { number: at, flashblocks: [], startedAt: null, sealedAt: null };
    Object.assign(block, {
      hash: header.hash, parent: header.parentHash, timestamp: number(header.timestamp),
      gasUsed: number(header.gasUsed), gasLimit: number(header.gasLimit),
      baseFee: number(header.baseFeePerGas), transactions, lastHash: hashOf(header.transactions?.at(-1)),
    });
    this.blocks.delete(at);
    this.blocks.set(at, block);
    for (const old of this.blocks.keys()) {
      if (this.blocks.size <= BLOCKS) break;
      this.blocks.delete(old);
    }
    return block;
  }

  /** Find the flashblocks of a block in progress that came before the page did. */
  async #resume(header) {
    const counts = await this.flashblockCounts(header.number);
    const block = this.#keep(header, header.transactions.length);
    block.flashblocks = counts.map((count, index) => ({ index, count, gas: null, at: null }));
    this.pending = block.number;
    this.counted = { gas: block.gasUsed, transactions: block.transactions };
  }

  flashblockCounts = (block) => flashblockCounts(this, block);

  /**
   * The block in progress has grown. `steps` are its new flashblocks as { index, count, gas } where
   * they are known; otherwise it is one, the next.
   */
  flashblock(header, steps = null) {
    const at = number(header.number), now = performance.now(), count = header.transactions.length;
    const known = this.blocks.get(at), before = known?.flashblocks.at(-1);
    const again = this.pending === at, continues = again && extendsBlock(known, header);
    if (!continues) this.counted = { gas: 0, transactions: 0 };
    const grown = this.#keep(header, count);
    if (!continues) Object.assign(grown, { flashblocks: [], startedAt: now, sealedAt: null });
    if (again && !continues && !steps) this.#recount(grown);
    const next = { index: continues && before ? before.index + 1 : 0, count, gas: grown.gasUsed };
    for (const step of steps ?? [next]) {
      if (grown.flashblocks.length < FLASHBLOCKS) grown.flashblocks.push({ ...step, at: now });
    }
    this.pending = at;
    const from = continues ? this.counted.transactions : 0;
    this.#count(grown.gasUsed, count);
    this.#remember(header.transactions.slice(from).slice(-NEW_AT_ONCE), grown);
    this.movedAt = now;
    this.changed("flashblock");
  }

  /** Flashblocks were taken back: ask which the block has now. */
  async #recount(block) {
    const counts = await this.flashblockCounts(hex(block.number)).catch(() => []);
    if (this.blocks.get(block.number) !== block || !counts.length) return;
    const late = block.flashblocks.filter((each) => each.count > counts.at(-1));
    const kept = counts.map((count, index) => ({ index, count, gas: null, at: block.startedAt }));
    block.flashblocks = [...kept, ...late.map((each, at) => ({ ...each, index: counts.length + at }))];
    this.changed("flashblock");
  }

  sealed(header) {
    const at = number(header.number), known = this.blocks.get(at);
    const block = this.#keep(header, header.transactions?.length ?? known?.transactions ?? null);
    block.sealedAt = performance.now();
    // A header does not say how many transactions there are, and the last flashblock may be lost.
    if (!header.transactions) this.#countTransactions(block);
    if (!known?.flashblocks.length) {
      this.counted = { gas: 0, transactions: 0 };
      this.#count(block.gasUsed, block.transactions ?? 0);
    }
    if (at <= this.latest) {
      // A reorganisation: what was above is gone.
      for (const each of this.blocks.keys()) if (each > at && each !== this.pending) this.blocks.delete(each);
    }
    this.latest = at;
    this.movedAt = block.sealedAt;
    this.changed("sealed");
  }

  async #countTransactions(block) {
    const hash = block.hash;
    const count = await this.ask("eth_getBlockTransactionCountByHash", hash).catch(() => null);
    if (count === null || block.hash !== hash || block.transactions === number(count)) return;
    block.transactions = number(count);
    this.changed("sealed");
  }

  /** Add what a block has gained to this second. */
  #count(gas, transactions) {
    this.gas = (this.gas ?? 0) + Math.max(0, gas - this.counted.gas);
    this.transactions = (this.transactions ?? 0) + Math.max(0, transactions - this.counted.transactions);
    this.counted = { gas, transactions };
  }

  #remember(transactions, block) {
    const index = block.flashblocks.at(-1)?.index;
    const known = transactions.map((each) => {
      const { hash, from, to, value, type } = typeof each === "string" ? { hash: each } : each;
      return { hash, from, to, value, type, block: block.number, index };
    });
    this.recent = [...known.reverse(), ...this.recent].slice(0, RECENT);
  }

  /** Newest first. */
  lastBlocks(count) {
    return [...this.blocks.values()].sort((a, b) => b.number - a.number).slice(0, count);
  }

  isSealed = (block) => this.latest !== null && block <= this.latest;

  // Seconds.

  /** Measure the way there and back; one at a time, and the second in which it ends has it. */
  async #ping() {
    const begun = performance.now();
    this.pinging = true;
    try {
      await this.ask("eth_blockNumber");
      this.latency = performance.now() - begun;
    } catch {
      // It counts as a gap.
    }
    this.pinging = false;
  }

  #second() {
    const { latency = null } = this;
    this.latency = null;
    if (this.ready && !this.pinging) this.#ping();
    const fee = this.blocks.get(this.pending ?? this.latest)?.baseFee ?? null;
    this.series.latency.add(latency);
    this.series.rate.add(this.ready ? this.transactions ?? 0 : null);
    this.series.gas.add(this.ready ? this.gas ?? 0 : null);
    this.series.fee.add(this.ready && fee !== null ? fee / 1e9 : null);
    this.gas = this.transactions = 0;
    this.changed("second");
  }
}
