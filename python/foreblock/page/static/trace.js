// What a transaction did inside: its calls as a tree, and the state that it changed.
//
// Both are requested when they are opened, because a trace executes the transaction again.

import { el, facts, show } from "./dom.js";
import { amount, decimal, grouped, number, short } from "./format.js";
import { knownCall, revertReason } from "./known.js";
import { addressLink } from "./sheet.js";

const MOST_CALLS = 500, MOST_SLOTS = 20;

/** A part of a sheet that is requested when it is opened. */
function opened(title, request) {
  const body = el("div", {});
  const load = async () => {
    if (!node.open || body.childElementCount) return;
    show(body, el("p", { class: "quiet" }, "…"));
    try {
      show(body, await request());
    } catch (error) {
      show(body, el("p", { class: "reason" }, error.message));
    }
  };
  const node = el("details", { class: "trace", toggle: load }, el("summary", {}, title), body);
  return node;
}

export const callTree = (network, hash) => opened("Calls", async () => {
  const top = await network.ask("debug_traceTransaction", hash, { tracer: "callTracer" });
  const left = { calls: MOST_CALLS }, tree = el("ul", { class: "tree" }, branch(network, top, left));
  return [tree, left.calls < 0 ? el("p", { class: "quiet" }, `only the first ${MOST_CALLS} calls are shown`) : null];
});

function branch(network, call, left) {
  left.calls -= 1;
  if (left.calls < 0) return null;
  const known = knownCall(call.input, call.to), created = call.type.startsWith("CREATE");
  const what = created ? "new contract" : known ? `${known.name}(${known.arguments.map(([, value]) => value).join(", ")})`
    : call.input === "0x" ? "" : call.input.slice(0, 10);
  return el("li", {},
    el("span", { class: "kind" }, call.type), " ", call.to ? addressLink(network, call.to, true) : null, " ",
    el("code", {}, what.length > 200 ? `${what.slice(0, 200)}…` : what), " ",
    call.value && call.value !== "0x0" ? el("b", {}, `${amount(call.value)} `) : null,
    el("small", {}, `${grouped(number(call.gasUsed))} gas`),
    call.error ? el("span", { class: "failed" }, ` ${call.output ? revertReason(call.output, call.to) : call.revertReason ?? call.error}`) : null,
    call.calls?.length ? el("ul", {}, call.calls.map((each) => branch(network, each, left))) : null);
}

export const stateChanges = (network, hash) => opened("State changes", async () => {
  const { pre, post } = await network.ask("debug_traceTransaction", hash, { tracer: "prestateTracer", tracerConfig: { diffMode: true } });
  const changed = [...new Set([...Object.keys(post), ...Object.keys(pre)])];
  return changed.length ? changed.map((address) => changes(network, address, pre[address] ?? {}, post[address])) : el("p", { class: "quiet" }, "Nothing changed.");
});

function changes(network, address, before, after) {
  const removed = after === undefined;
  const lines = [];
  if (after?.balance !== undefined) {
    const gained = BigInt(after.balance) - BigInt(before.balance ?? 0);
    lines.push(["Balance", el("span", {}, `${amount(before.balance ?? 0)} → ${amount(after.balance)} `, el("small", { class: gained < 0n ? "less" : "more" }, `${gained < 0n ? "" : "+"}${decimal(gained, 18, 9)}`))]);
  }
  if (after?.nonce !== undefined) lines.push(["Nonce", `${before.nonce ?? 0} → ${after.nonce}`]);
  if (after?.code !== undefined) lines.push(["Code", `${grouped((after.code.length - 2) / 2)} bytes`]);
  const slots = [...new Set([...Object.keys(before.storage ?? {}), ...Object.keys(after?.storage ?? {})])];
  for (const slot of slots.slice(0, MOST_SLOTS)) lines.push([el("code", { title: slot }, short(slot, 10, 6)), el("code", {}, `${word(before.storage?.[slot])} → ${word(after?.storage?.[slot])}`)]);
  if (slots.length > MOST_SLOTS) lines.push(["", `and ${slots.length - MOST_SLOTS} more slots`]);
  if (removed && !lines.length) lines.push(["", "removed"]);
  return el("article", { class: "log" }, el("header", {}, addressLink(network, address)), facts(...lines));
}

/** A slot's value without leading zeros. */
const word = (value) => (value === undefined ? "0" : short("0x" + value.slice(2).replace(/^0+(?=.)/, ""), 14, 6));
