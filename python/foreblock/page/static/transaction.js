// A transaction: its effects, when it was pre-confirmed, its logs, and why it failed.

import { copyable, el, facts, show } from "./dom.js";
import { bytes, clock, ether, grouped, gwei, number, share, short } from "./format.js";
import { knownCall, knownEvent, revertReason } from "./known.js";
import { heading, link, missing } from "./sheet.js";

const TYPES = { "0x0": "legacy", "0x1": "access list", "0x2": "dynamic fee", "0x3": "blob", "0x4": "set code", "0x7e": "deposit" };
const MOST_LOGS = 100;

export async function showTransaction(sheet, network, hash, networks = []) {
  const [transaction, receipt, latest] = await network.askAll(
    ["eth_getTransactionByHash", hash], ["eth_getTransactionReceipt", hash], ["eth_blockNumber"],
  );
  const title = `Transaction ${short(hash, 10, 4)}`;
  if (!transaction || transaction instanceof Error) {
    const other = await holder(networks.filter((each) => each !== network), hash);
    if (other) location.replace(`#/${other.name}/tx/${hash}`);
    return missing(sheet, title, network, "No block and no flashblock has this transaction.", true);
  }
  const at = number(transaction.blockNumber), sealed = at !== null && at <= Number(latest);
  const failed = receipt?.status === "0x0";
  const reason = failed ? await failure(network, hash) : null;
  const early = receipt ? await preconfirmation(network, transaction, sealed) : "waits in the pool";
  const fee = receipt ? BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice ?? 0) : null;
  show(sheet,
    heading(title, network, failed ? ["failed", "failed"] : sealed ? ["sealed", "sealed"] : ["pending", receipt ? "pre-confirmed" : "waiting"]),
    failed ? el("p", { class: "reason", role: "status" }, el("b", {}, "Reverted: "), reason) : null,
    facts(
      ["Hash", copyable(hash, short(hash, 22, 8))],
      ["Pre-confirmed", early],
      ["Block", at === null ? "" : el("span", {}, link(network, "block", at, grouped(at)), ` at index ${number(transaction.transactionIndex)}, ${clock(transaction.blockTimestamp ?? 0)}`)],
      ["From", link(network, "address", transaction.from, transaction.from)],
      ["To", transaction.to ? link(network, "address", transaction.to, transaction.to) : receipt?.contractAddress ? el("span", {}, "new contract ", link(network, "address", receipt.contractAddress, receipt.contractAddress)) : "new contract"],
      ["Value", ether(transaction.value)],
      ["Type", `${TYPES[transaction.type] ?? transaction.type}, nonce ${grouped(number(transaction.nonce ?? 0))}`],
      ["Gas", receipt ? `${grouped(number(receipt.gasUsed))} of ${grouped(number(transaction.gas))} (${share(number(receipt.gasUsed), number(transaction.gas))})` : grouped(number(transaction.gas))],
      ["Fee", fee === null || transaction.type === "0x7e" ? "" : `${ether(fee, 9)} at ${gwei(receipt.effectiveGasPrice)}${receipt.l1Fee ? `, and ${ether(receipt.l1Fee, 12)} for L1` : ""}`],
    ),
    input(transaction),
    receipt ? logs(network, receipt.logs) : null,
  );
  return { live: !sealed, events: ["flashblock", "sealed", "state"] };
}

/** The network that has a transaction, which need not be the selected one. */
async function holder(networks, hash) {
  for (const network of networks.filter((each) => each.ready)) {
    if (await network.ask("eth_getTransactionByHash", hash).catch(() => null)) return network;
  }
  return null;
}

async function failure(network, hash) {
  const data = await network.ask("ots_getTransactionError", hash).catch(() => null);
  if (data === null) return "the reason is not kept any more";
  if (data !== "0x") return revertReason(data);
  // No data: a revert without a reason, or out of gas; a trace shows which.
  const trace = await network.ask("debug_traceTransaction", hash, { tracer: "callTracer", tracerConfig: { onlyTopCall: true } }).catch(() => null);
  return !trace?.error || trace.error === "execution reverted" ? "without a reason" : trace.error;
}

/** Which flashblock had it first, and how long before the seal, as seen by this page. */
async function preconfirmation(network, transaction, sealed) {
  const at = number(transaction.blockNumber), place = number(transaction.transactionIndex);
  const block = network.blocks.get(at);
  const seen = block?.flashblocks.find((each) => each.count > place);
  if (seen?.at && block.sealedAt) {
    const seconds = (block.sealedAt - seen.at) / 1000;
    return marked(network, at, seen.index, `, ${seconds.toFixed(2)} s before its block was sealed`);
  }
  if (seen?.at && !sealed) return marked(network, at, seen.index, ", its block is still open");
  const known = await network.flashblocksOf(at).catch(() => []);
  const index = known.findIndex((each) => each.count > place);
  if (index < 0) return "its flashblocks are not kept any more";
  return marked(network, at, index, known.length > 1 ? `, ${index + 1} of ${known.length}` : "");
}

const marked = (network, block, index, rest) =>
  el("span", { class: "early" }, "in flashblock ", link(network, "block", `${block}.${index}`, `${grouped(block)}.${index}`), rest);

function input(transaction) {
  if (transaction.input === "0x") return null;
  const call = knownCall(transaction.input);
  return el("section", {}, el("h3", {}, call ? `Calls ${call.name}` : "Data"),
    call ? facts(...call.arguments) : null,
    el("details", { open: !call && transaction.input.length < 600 }, el("summary", {}, bytes(transaction.input)), el("pre", {}, transaction.input)));
}

/** Logs with their names if they are known. */
export function logs(network, all) {
  if (!all.length) return el("p", { class: "quiet" }, "No logs.");
  const rest = all.length > MOST_LOGS ? el("p", { class: "quiet" }, `and ${all.length - MOST_LOGS} more`) : null;
  return el("section", {}, el("h3", {}, `Logs (${all.length})`),
    all.slice(0, MOST_LOGS).map((log) => {
      const event = knownEvent(log);
      return el("article", { class: "log" },
        el("header", {}, el("b", {}, event?.name ?? short(log.topics[0] ?? "no topic", 14, 4)), link(network, "address", log.address, short(log.address, 14, 6))),
        event ? facts(...event.arguments) : el("pre", {}, [...log.topics, log.data].join("\n")));
    }), rest);
}
