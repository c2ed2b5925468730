// The state of one network: its last blocks, how they grew, and rates over minutes.
//
// Everything is bounded, whatever the chain does: blocks, flashblocks of a block, transactions
// and seconds. Events (`change`) name what to draw again: "state", "flashblock", "sealed", "second",
// "event".
// history.js reads the past, following.js receives what comes.

import { Connection, RpcError } from "./connection.js";
import { follow } from "./following.js";
import { grouped, hex, number, plural } from "./format.js";
import { fillBlocks, fillSeries, listTransactions, requestFlashblocks } from "./history.js";

export const SECONDS = 300;
const BLOCKS = 300, READ_AT_START = 31, FLASHBLOCKS = 256, RECENT = 24;
const EVENTS = 20, LIVES = 200;
const NEWEST = 5; // listed transactions of a block that came as a whole

/** The last values of a quantity, one for each second. */
class Series {
  values = [];

  add(value) {
    this.values.push(value);
    if (this.values.length > SECONDS) this.values.shift();
  }

  /** Values before the first known one. */
  fill(values) {
    if (this.values.every((each) => each === null)) this.values = values;
  }

  get last() {
    return this.values.at(-1) ?? null;
  }
}

export class Network extends EventTarget {
  constructor({ name, socket, http }) {
    super();
    this.name = name;
    this.accounts = [];
    this.modules = {};
    this.connection = new Connection(socket, http, this);
    this.series = { latency: new Series(), rate: new Series(), gas: new Series(), fee: new Series() };
    this.events = []; // reorganisations and dropped flashblocks, newest first
    this.lives = new Map(); // what this page saw of transactions, by hash
    this.round = 0; // of connecting: what comes late from an earlier one is dropped
    this.#reset();
  }

  #reset() {
    this.blocks = new Map(); // by number, oldest first
    this.recent = []; // transactions, newest first
    this.filled = false; // true when those of earlier blocks are in it
    this.pending = null; // number
    this.latest = null;
    this.replacedTo = null; // the last block of a chain that was replaced
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

  /** True if the service has methods of a namespace. */
  has = (namespace) => namespace in this.modules;

  get isDev() {
    return this.accounts.length > 0 && this.has("evm");
  }

  changed(what) {
    this.dispatchEvent(new CustomEvent("change", { detail: what }));
  }

  // Connecting.

  async opened(state) {
    const round = ++this.round;
    this.#reset();
    try {
      await this.#load();
      this.#ping();
      if (round === this.round) await follow(this, state, round);
      this.changed("state");
      if (round === this.round) await fillBlocks(this, round);
      if (round === this.round) this.filled = true;
    } catch {
      // The connection has ended; the next one starts again.
    }
    this.changed("state");
  }

  closed() {
    this.round += 1;
    this.changed("state");
  }

  async #load() {
    const [chain, client, latest, pending, accounts, modules] = await this.askAll(
      ["eth_chainId"], ["web3_clientVersion"], ["eth_getBlockByNumber", "latest", false],
      ["eth_getBlockByNumber", "pending", false], ["eth_accounts"], ["rpc_modules"],
    );
    // Accounts are those of a dev chain, whose methods are served at this address.
    this.accounts = Array.isArray(accounts) ? accounts.map((each) => each.toLowerCase()) : [];
    this.modules = modules instanceof RpcError ? {} : modules ?? {};
    if (latest instanceof RpcError) throw latest;
    this.chain = number(chain);
    this.client = client;
    const last = number(latest.number), first = Math.max(0, last - READ_AT_START + 1);
    const numbers = Array.from({ length: last - first + 1 }, (_, at) => hex(first + at));
    const headers = await this.askAll(...numbers.map((each) => ["erigon_getHeaderByNumber", each]));
    const counts = await this.askAll(...numbers.map((each) => ["eth_getBlockTransactionCountByNumber", each]));
    headers.forEach((header, at) => {
      if (header && !(header instanceof RpcError)) this.#keep(header, number(counts[at]));
    });
    this.#keep(latest, latest.transactions.length);
    this.latest = last;
    if (pending && pending.parentHash === latest.hash) pending.number ??= hex(last + 1);
    if (pending && number(pending.number) > last) await this.#resume(pending);
    fillSeries(this);
    this.changed("state");
  }

  // Blocks.

  #keep(header, transactions) {
    const at = number(header.number);
    const block = this.blocks.get(at) ?? { number: at, flashblocks: [], startedAt: null, sealedAt: null };
    Object.assign(block, {
      hash: header.hash, parent: header.parentHash, timestamp: number(header.timestamp),
      gasUsed: number(header.gasUsed), gasLimit: number(header.gasLimit),
      baseFee: number(header.baseFeePerGas), transactions,
    });
    this.blocks.delete(at);
    this.blocks.set(at, block);
    for (const old of this.blocks.keys()) {
      if (this.blocks.size <= BLOCKS) break;
      this.blocks.delete(old);
    }
    return block;
  }

  /** Find the flashblocks of a block in progress that are older than the page. */
  async #resume(header) {
    const found = await requestFlashblocks(this, header.number);
    const block = this.#keep(header, header.transactions.length);
    block.flashblocks = found.map((each) => ({ ...each, at: null }));
    this.pending = block.number;
    this.counted = { gas: block.gasUsed, transactions: block.transactions };
  }

  /** The flashblocks of a block: the known ones if they are complete. */
  async flashblocksOf(block) {
    const known = this.blocks.get(block)?.flashblocks ?? [];
    return known.length && known.every((each, at) => each.index === at) ? known : requestFlashblocks(this, hex(block));
  }

  /**
   * The block in progress has grown by `steps`, its new flashblocks as { index, count, gas }. Those
   * known from the first of them on are removed. `newest` are transactions.
   */
  flashblock(header, steps, newest) {
    const at = number(header.number), now = performance.now();
    if (at <= this.latest) {
      this.#checkLatest(header, steps, newest);
      return;
    }
    const known = this.blocks.get(at), continues = this.pending === at && known?.parent === header.parentHash;
    const kept = continues ? known.flashblocks.filter((each) => each.index < steps[0].index) : [];
    const isNext = kept.length > 0 && kept.length === known.flashblocks.length;
    if (continues) this.#dropFlashblocks(known, steps);
    if (!isNext) this.counted = { gas: kept.at(-1)?.gas ?? 0, transactions: kept.at(-1)?.count ?? 0 };
    const block = this.#keep(header, steps.at(-1).count);
    if (!kept.length) Object.assign(block, { startedAt: now, sealedAt: null });
    block.flashblocks = [...kept, ...steps.map((step) => ({ ...step, at: now }))].slice(0, FLASHBLOCKS);
    if (kept.length < Math.min(steps[0].index, FLASHBLOCKS)) this.#recount(block);
    this.pending = at;
    this.#count(block.gasUsed, block.transactions);
    this.#remember(newest, block);
    this.movedAt = now;
    this.changed("flashblock");
  }

  /** Request flashblocks that were announced before the first known one. */
  async #recount(block) {
    const found = await requestFlashblocks(this, hex(block.number)).catch(() => []);
    if (this.blocks.get(block.number) !== block) return;
    const seen = new Map(block.flashblocks.map((each) => [each.index, each]));
    const late = block.flashblocks.filter((each) => each.index >= found.length);
    block.flashblocks = [...found.map((each) => seen.get(each.index) ?? { ...each, at: block.startedAt }), ...late];
    this.changed("flashblock");
  }

  sealed(header) {
    const at = number(header.number), known = this.blocks.get(at), replaces = at <= this.latest && known?.hash !== header.hash;
    if (replaces) this.#replace(at);
    else if (known) this.#dropTail(known, number(header.gasUsed));
    const block = this.#keep(header, header.transactions?.length ?? (replaces ? null : known?.transactions) ?? null);
    if (replaces) block.flashblocks = [];
    block.replaces = this.replacedTo !== null && at <= this.replacedTo;
    block.sealedAt = performance.now();
    // A header has no number of transactions, and the last flashblock may be lost.
    if (!header.transactions) this.#countTransactions(block);
    else this.#listWhole(block);
    if (!known?.flashblocks.length) {
      this.counted = { gas: 0, transactions: 0 };
      this.#count(block.gasUsed, block.transactions ?? 0);
    }
    this.latest = at;
    this.movedAt = block.sealedAt;
    this.#findDropped();
    this.changed("sealed");
  }

  // Blocks and flashblocks that leave the chain.

  #note(kind, block, text) {
    this.events = [{ id: (this.events[0]?.id ?? 0) + 1, kind, block, text, at: Date.now() }, ...this.events].slice(0, EVENTS);
    this.changed("event");
  }

  /** Blocks from `at` on are replaced by others, which follow. */
  #replace(at) {
    const count = this.latest - at + 1;
    this.replacedTo = this.latest;
    this.#note("reorg", at, `${plural(count, "block")} replaced, from ${grouped(at)}`);
    for (const each of this.blocks.keys()) if (each > at && each !== this.pending) this.blocks.delete(each);
    this.#drop((each) => each.block >= at);
  }

  /** A flashblock of a sealed block came late, or the block is in progress again. */
  async #checkLatest(header, steps, newest) {
    const at = number(header.number), latest = await this.ask("eth_blockNumber").catch(() => null);
    if (latest === null || number(latest) >= at) return;
    if (at <= this.latest) this.#rewind(at);
    this.flashblock(header, steps, newest);
  }

  /** The chain ends earlier, as after `evm_revert`: a sealed block is in progress again. */
  #rewind(at) {
    const count = this.latest - at + 1;
    this.#note("rewind", at - 1, `${plural(count, "block")} removed, the latest is ${grouped(at - 1)}`);
    for (const each of this.blocks.keys()) if (each >= at) this.blocks.delete(each);
    this.latest = at - 1;
    this.#drop((each) => each.block >= at);
    this.changed("sealed");
  }

  /** Flashblocks of a block in progress are replaced by `steps`. */
  #dropFlashblocks(block, [first]) {
    // Those that were requested may be announced again.
    const same = (each) => each.at === null || (each.index === first.index && each.count === first.count && each.gas === first.gas);
    const lost = block.flashblocks.filter((each) => each.index >= first.index && !same(each));
    if (lost.length) this.#noteDropped(block, lost);
  }

  /** A block is sealed with less than its flashblocks had. */
  #dropTail(block, gasUsed) {
    const lost = block.flashblocks.filter((each) => each.gas !== null && each.gas > gasUsed && !each.dropped);
    for (const each of lost) each.dropped = true;
    if (lost.length) this.#noteDropped(block, lost);
  }

  #noteDropped(block, lost) {
    const from = lost[0].index, transactions = lost.at(-1).count - (block.flashblocks.find((each) => each.index === from - 1)?.count ?? 0);
    this.#note("dropped", block.number, `block ${grouped(block.number)} lost ${plural(lost.length, "flashblock")} from ${from}, with ${plural(transactions, "transaction")}`);
    this.#drop((each) => each.block === block.number && (this.indexOf(each) ?? from) >= from);
  }

  /** Mark listed transactions; those that are found again elsewhere are moved. */
  #drop(isDropped) {
    for (const each of this.recent) if (isDropped(each)) each.dropped = true;
    for (const life of this.lives.values()) if (life.block !== null && !life.dropped && isDropped(life)) life.dropped = `${life.block}.${life.index ?? "?"}`;
    this.#findDropped();
  }

  async #findDropped() {
    const dropped = this.recent.filter((each) => each.dropped);
    if (!dropped.length) return;
    const found = await this.askAll(...dropped.map((each) => ["eth_getTransactionByHash", each.hash])).catch(() => []);
    const again = found.flatMap((each, at) => (each?.blockNumber
      ? [{ ...dropped[at], dropped: false, index: undefined, block: number(each.blockNumber), at: number(each.transactionIndex) }] : []));
    this.list(again);
    this.changed("flashblock");
  }

  /** What this page saw of a transaction: when it was sent, and where and when it was included. */
  life(hash) {
    const known = this.lives.get(hash) ?? { sentAt: null, block: null, index: null, at: null, earlyAt: null, safeAt: null, dropped: null };
    this.lives.delete(hash);
    this.lives.set(hash, known);
    if (this.lives.size > LIVES) this.lives.delete(this.lives.keys().next().value);
    return known;
  }

  async #countTransactions(block) {
    const hash = block.hash;
    const count = await this.ask("eth_getBlockTransactionCountByHash", hash).catch(() => null);
    if (count === null || block.hash !== hash) return;
    if (block.transactions !== number(count)) {
      const before = block.transactions ?? 0;
      block.transactions = number(count);
      if (!block.flashblocks.length) this.transactions = (this.transactions ?? 0) + Math.max(0, block.transactions - before);
      this.changed("sealed");
    }
    this.#listWhole(block);
  }

  /** List transactions of a block that came without flashblocks, or without its last one. */
  #listWhole(block) {
    if (block.transactions <= (block.flashblocks.at(-1)?.count ?? 0)) return;
    listTransactions(this, [block], NEWEST).then(() => this.changed("flashblock")).catch(() => null);
  }

  /** Add the growth of a block to this second. */
  #count(gas, transactions) {
    this.gas = (this.gas ?? 0) + Math.max(0, gas - this.counted.gas);
    this.transactions = (this.transactions ?? 0) + Math.max(0, transactions - this.counted.transactions);
    this.counted = { gas, transactions };
  }

  // Transactions.

  #remember(transactions, block) {
    const index = block.flashblocks.at(-1)?.index, end = block.transactions - transactions.length;
    this.list(transactions.map(({ hash, from, to, value, type, input }, at) =>
      ({ hash, from, to, value, type, input, block: block.number, index, at: end + at })));
  }

  /** Add transactions to the list, the last of the chain first. */
  list(transactions) {
    const added = new Set(transactions.map((each) => each.hash));
    this.recent = [...transactions, ...this.recent.filter((each) => !added.has(each.hash))]
      .sort((a, b) => (a.dropped ? 1 : 0) - (b.dropped ? 1 : 0) || b.block - a.block || b.at - a.at).slice(0, RECENT);
  }

  /** The flashblock of a listed transaction; undefined if it is not known. */
  indexOf = ({ block, at, index }) => index ?? this.blocks.get(block)?.flashblocks.find((each) => each.count > at)?.index;

  /** Newest first. */
  lastBlocks(count) {
    return [...this.blocks.values()].sort((a, b) => b.number - a.number).slice(0, count);
  }

  isSealed = (block) => this.latest !== null && block <= this.latest;

  // Seconds.

  /** Measure a round trip, one at a time; it counts for the second in which it ends. */
  async #ping() {
    const begun = performance.now(), before = this.latest, round = this.round;
    this.pinging = true;
    try {
      const latest = number(await this.ask("eth_blockNumber"));
      this.latency = performance.now() - begun;
      // A chain that ends earlier announces nothing until its next block.
      if (before !== null && latest < before && this.latest === before && round === this.round) this.#rewind(latest + 1);
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
