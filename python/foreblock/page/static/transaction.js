// A transaction: its effects, when it was pre-confirmed, its logs, and why it failed.

import { copyable, el, facts, show } from "./dom.js";
import { amount, bytes, clock, grouped, gwei, number, plural, share, short, wallClock } from "./format.js";
import { knownCall, knownEvent, revertReason } from "./known.js";
import { addressLink, argumentFacts, heading, link, missing } from "./sheet.js";
import { callTree, stateChanges } from "./trace.js";

const TYPES = { "0x0": "legacy", "0x1": "access list", "0x2": "dynamic fee", "0x3": "blob", "0x4": "set code", "0x7e": "deposit" };
const MOST_LOGS = 100;

export async function showTransaction(sheet, network, hash, networks = []) {
  const [transaction, receipt, latest, safe, status] = await network.askAll(
    ["eth_getTransactionByHash", hash], ["eth_getTransactionReceipt", hash], ["eth_blockNumber"],
    ["eth_getBlockByNumber", "safe", false], ["base_transactionStatus", hash],
  );
  const life = network.life(hash), safeNumber = safe?.number ? number(safe.number) : null;
  const title = `Transaction ${short(hash, 10, 4)}`;
  if (!transaction || transaction instanceof Error) {
    const other = await holder(networks.filter((each) => each !== network), hash);
    if (other) location.replace(`#/${other.name}/tx/${hash}`);
    const accepted = status?.status === "Known";
    if (life.block !== null) life.dropped ??= `${life.block}.${life.index ?? "?"}`;
    if (!life.dropped && !accepted && !life.sentAt) return missing(sheet, title, network, "No block and no flashblock has this transaction.", true);
    const why = life.dropped ? `Dropped: it was in flashblock ${life.dropped}, which is no longer part of the chain.` : "";
    show(sheet, heading(title, network, accepted && !life.dropped ? ["pending", "accepted"] : ["failed", "dropped"]),
      why ? el("p", { class: "reason", role: "status" }, why) : null,
      accepted ? el("p", { class: "waiting", role: "status" }, "Accepted, waiting for a flashblock.") : el("p", { class: "empty" }, "No block, no flashblock and no pool has it."),
      lifecycle(network, life, null, null, null, false, safeNumber),
      facts(["Hash", copyable(hash, short(hash, 22, 8))]));
    return { live: true, events: ["flashblock", "sealed", "state"] };
  }
  const at = number(transaction.blockNumber), sealed = at !== null && at <= Number(latest);
  const failed = receipt?.status === "0x0";
  const reason = failed ? await failure(network, hash, transaction.to) : null;
  const early = at === null ? null : await preconfirmation(network, at, number(transaction.transactionIndex));
  if (at !== null) {
    life.earlyAt ??= early?.at ?? null;
    Object.assign(life, { block: at, index: early?.index ?? null, at: number(transaction.transactionIndex) });
  }
  const isSafe = sealed && safeNumber !== null && at <= safeNumber;
  const fee = receipt ? BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice ?? 0) : null;
  show(sheet,
    heading(title, network, failed ? ["failed", "failed"] : sealed ? ["sealed", "sealed"] : ["pending", receipt ? "pre-confirmed" : "waiting"]),
    life.dropped && life.dropped !== `${at}.${early?.index}` ? el("p", { class: "reason", role: "status" }, `It was dropped from ${life.dropped}, and included again.`) : null,
    lifecycle(network, life, early, at, number(transaction.blockTimestamp), sealed, safeNumber),
    failed ? el("p", { class: "reason", role: "status" }, el("b", {}, "Reverted: "), reason) : null,
    facts(
      ["Hash", copyable(hash, short(hash, 22, 8))],
      ["Block", at === null ? "" : el("span", {}, link(network, "block", at, grouped(at)), ` at index ${number(transaction.transactionIndex)}, ${clock(transaction.blockTimestamp ?? 0)}`)],
      ["From", addressLink(network, transaction.from)],
      ["To", transaction.to ? addressLink(network, transaction.to) : receipt?.contractAddress ? el("span", {}, "new contract ", addressLink(network, receipt.contractAddress)) : "new contract"],
      ["Value", amount(transaction.value)],
      ["Type", `${TYPES[transaction.type] ?? transaction.type}, nonce ${grouped(number(transaction.nonce ?? 0))}`],
      ["Gas", receipt ? `${grouped(number(receipt.gasUsed))} of ${grouped(number(transaction.gas))} (${share(number(receipt.gasUsed), number(transaction.gas))})` : grouped(number(transaction.gas))],
      ["Fee", fee === null || transaction.type === "0x7e" ? "" : `${amount(fee, 9)} at ${gwei(receipt.effectiveGasPrice)}${transaction.maxFeePerGas ? ` (at most ${gwei(transaction.maxFeePerGas)})` : ""}${receipt.l1Fee ? `, and ${amount(receipt.l1Fee, 12)} for L1` : ""}`],
      ["Blobs", transaction.blobVersionedHashes ? `${transaction.blobVersionedHashes.length}, their gas at ${receipt?.blobGasPrice ? `${gwei(receipt.blobGasPrice)}, ` : ""}at most ${gwei(transaction.maxFeePerBlobGas)}` : ""],
      ["Delegations", transaction.authorizationList?.length ? el("span", {}, transaction.authorizationList.map((each) => el("div", {}, "to ", addressLink(network, each.address)))) : ""],
    ),
    input(network, transaction),
    accessList(network, transaction.accessList ?? []),
    receipt ? logs(network, receipt.logs) : null,
    receipt && network.has("debug") ? [callTree(network, hash), stateChanges(network, hash)] : null,
  );
  return { live: !isSafe, events: ["flashblock", "sealed", "state"] };
}

/** The network that has a transaction, which need not be the selected one. */
async function holder(networks, hash) {
  for (const network of networks.filter((each) => each.ready)) {
    if (await network.ask("eth_getTransactionByHash", hash).catch(() => null)) return network;
  }
  return null;
}

async function failure(network, hash, to) {
  const data = await network.ask("ots_getTransactionError", hash).catch(() => null);
  if (data === null) return "the reason is not kept any more";
  if (data !== "0x") return revertReason(data, to);
  // No data: a revert without a reason, or out of gas; a trace shows which.
  const trace = await network.ask("debug_traceTransaction", hash, { tracer: "callTracer", tracerConfig: { onlyTopCall: true } }).catch(() => null);
  return !trace?.error || trace.error === "execution reverted" ? "without a reason" : trace.error;
}

/** The flashblock that had it first, as { index, of, at }; at is when this page saw it. */
async function preconfirmation(network, block, place) {
  const known = await network.flashblocksOf(block).catch(() => []);
  const found = known.find((each) => each.count > place && !each.dropped);
  return found ? { index: found.index, of: known.length, at: found.at && performance.timeOrigin + found.at } : null;
}

/** Sent, flashblock, sealed, safe: where a transaction is, and when this page saw it there. */
function lifecycle(network, life, early, at, sealedTime, isSealed, safe) {
  const step = (name, state, what, time, since) => el("li", { class: state, "aria-current": state.startsWith("now") ? "step" : null },
    el("b", {}, name), el("span", {}, what),
    time ? el("small", {}, time % 1000 ? wallClock(time) : wallClock(time).slice(0, 8), since ? ` · +${((time - since) / 1000).toFixed(2)} s` : "") : null);
  const before = life.sentAt ?? early?.at;
  const sealedAt = network.blocks.get(at)?.sealedAt, sealed = isSealed && sealedAt ? performance.timeOrigin + sealedAt : null;
  const isSafe = isSealed && safe !== null && at <= safe;
  if (isSafe && life.unsafe) life.safeAt ??= Date.now();
  life.unsafe = !isSafe;
  const gained = early?.at && sealed ? el("em", {}, `${((sealed - early.at) / 1000).toFixed(2)} s before its block was sealed`) : null;
  const place = early ? el("span", { class: "early" }, "in flashblock ", link(network, "block", `${at}.${early.index}`, `${grouped(at)}.${early.index}`), early.of > 1 ? `, ${early.index + 1} of ${early.of}` : "", gained ? el("br") : "", gained)
    : at === null ? "waiting" : isSealed ? "not kept" : "";
  return el("ol", { class: "life", "aria-label": "Life of the transaction" },
    step("Sent", at === null ? "now" : "done", life.sentAt ? "from this page" : at === null ? "accepted" : "not from this page", life.sentAt),
    // A service without flashblocks has no such step.
    isSealed && !early && network.pending === null ? null : step("Pre-confirmed", at === null ? "todo" : isSealed ? "done provisional" : "now provisional", place, early?.at, life.sentAt),
    step("Sealed", isSafe ? "done" : isSealed ? "now" : "todo", at === null ? "" : link(network, "block", at, grouped(at)), isSealed ? sealed ?? (sealedTime ? sealedTime * 1000 : null) : null, sealed ? before : null),
    step("Safe", isSafe ? "now" : "todo", isSafe ? "" : safe === null || at === null ? "" : `safe is ${grouped(safe)}`, life.safeAt, life.safeAt ? before : null));
}

function accessList(network, list) {
  if (!list.length) return null;
  const keys = list.reduce((sum, each) => sum + each.storageKeys.length, 0);
  return el("details", {}, el("summary", {}, `Access list: ${plural(list.length, "account")}, ${plural(keys, "key")}`),
    list.map((each) => el("article", { class: "log" }, el("header", {}, addressLink(network, each.address)),
      each.storageKeys.length ? el("pre", { tabindex: "0" }, each.storageKeys.join("\n")) : null)));
}

function input(network, transaction) {
  if (transaction.input === "0x") return null;
  const call = knownCall(transaction.input, transaction.to);
  return el("section", {}, el("h3", {}, call ? `Method: ${call.name}` : "Data"),
    call ? argumentFacts(network, call.arguments) : null,
    el("details", { open: !call && transaction.input.length < 600 }, el("summary", {}, bytes(transaction.input)), el("pre", { tabindex: "0" }, transaction.input)));
}

/** Logs with their names if they are known. */
export function logs(network, all) {
  if (!all.length) return el("p", { class: "quiet" }, "No logs.");
  const rest = all.length > MOST_LOGS ? el("p", { class: "quiet" }, `and ${all.length - MOST_LOGS} more`) : null;
  return el("section", {}, el("h3", {}, `Logs (${all.length})`),
    all.slice(0, MOST_LOGS).map((log) => {
      const event = knownEvent(log);
      return el("article", { class: "log" },
        el("header", {}, el("b", {}, event?.name ?? short(log.topics[0] ?? "no topic", 14, 4)), addressLink(network, log.address, true)),
        event ? argumentFacts(network, event.arguments) : el("pre", { tabindex: "0" }, [...log.topics, log.data].join("\n")));
    }), rest);
}
