// A form for calls and simulations with readable signatures and decoded results.

import { canonical, decode, encode, parseSignature, split } from "./abi.js";
import { el, facts, show } from "./dom.js";
import { clock, grouped, hex, number, short, wei } from "./format.js";
import { etherMoved, revertReason, scaled, SIGNATURES, written } from "./known.js";
import { signaturesOf } from "./abis.js";
import { keccak } from "./keccak.js";
import { heading } from "./sheet.js";
import { logs } from "./transaction.js";

const MOST_CALLS = 20;
let numbers = 0;

export function makeCallForm(network, to = "") {
  const calls = el("div", { class: "calls" }), results = el("output", { class: "results" });
  const block = el("input", { name: "block", value: "pending", list: "blocks", autocomplete: "off", spellcheck: "false" });
  const add = (address) => calls.childElementCount < MOST_CALLS && calls.append(makeCall(calls, address));
  add(to);
  const run = async (action) => {
    show(results, el("p", { class: "quiet" }, "…"));
    try {
      const wanted = [...calls.children].map(read);
      show(results, await action(network, wanted, parameter(block.value)));
    } catch (error) {
      show(results, el("p", { class: "reason", role: "alert" }, error.message));
    }
  };
  const submit = (event) => {
    event.preventDefault();
    run(event.submitter?.name === "simulate" ? simulate : call);
  };
  const options = (id, values) => el("datalist", { id }, values.map((value) => el("option", { value })));
  return el("div", { class: "inner" }, heading("Call", network),
    el("form", { class: "call", submit }, calls,
      el("div", { class: "bar" },
        el("label", {}, el("span", {}, "at block"), block),
        el("button", { type: "button", click: () => add(calls.lastElementChild?.querySelector("[name=to]").value ?? "") }, "Add a call"),
        el("span", { class: "space" }),
        el("button", { type: "submit", name: "simulate" }, "Simulate"),
        el("button", { type: "submit", name: "call", class: "main" }, "Call")),
      options("signatures", [...signaturesOf(to).filter((each) => each.startsWith("function ")).map((each) => each.slice(9)), ...SIGNATURES]), options("blocks", ["pending", "latest", "safe", "finalized"])),
    results,
    el("p", { class: "quiet" }, "Call runs each call at the selected block. Simulate runs them in sequence on top of it. Nothing is sent."));
}

function makeCall(calls, to) {
  const group = ++numbers;
  const field = (name, label, props = {}) => {
    const id = `${name}-${group}`;
    return el("label", { class: `field ${name}`, for: id }, el("span", {}, label),
      el("input", { id, name, autocomplete: "off", spellcheck: "false", ...props }));
  };
  const node = el("fieldset", {},
    field("to", "to", { placeholder: "0x… contract or account", value: to }),
    field("signature", "function, or data", { placeholder: "balanceOf(address) returns (uint256)", list: "signatures" }),
    field("arguments", "arguments", { placeholder: "0xf39F…2266, [1, 2], (true, \"text\")" }),
    field("from", "from", { placeholder: "0x…" }),
    field("value", "value in ETH", { placeholder: "0", inputmode: "decimal" }),
    el("button", { type: "button", class: "remove", title: "Remove this call", "aria-label": "Remove this call", click: () => calls.childElementCount > 1 && node.remove() }, "✕"));
  return node;
}

const parameter = (text) => (/^\d+$/.test(text.trim()) ? hex(text.trim()) : text.trim() || "latest");

/** The JSON-RPC parameters of a call, and the signature that decodes its result. */
function read(fieldset) {
  for (const each of fieldset.querySelectorAll("input")) each.removeAttribute("aria-invalid");
  const invalid = (name, make) => {
    try {
      return make();
    } catch (error) {
      const input = fieldset.querySelector(`[name=${name}]`);
      input.setAttribute("aria-invalid", "true");
      input.focus();
      throw error;
    }
  };
  const text = (name) => fieldset.querySelector(`[name=${name}]`).value.trim();
  const request = {};
  for (const name of ["to", "from"]) {
    if (text(name) === "") continue;
    invalid(name, () => {
      if (!/^0x[0-9a-fA-F]{40}$/.test(text(name))) throw new Error(`“${name}” is not an address: ${text(name)}`);
    });
    request[name] = text(name);
  }
  if (text("value")) request.value = invalid("value", () => hex(wei(text("value"))));
  const signature = text("signature");
  if (/^0x([0-9a-fA-F]{2})*$/.test(signature)) return { request: { ...request, input: signature }, signature: null };
  if (signature === "") return { request, signature: null };
  const parsed = invalid("signature", () => parseSignature(signature)), name = canonical(parsed);
  const data = invalid("arguments", () => encode(parsed.inputs, split(text("arguments"))));
  return { request: { ...request, input: `0x${keccak(name).slice(0, 8)}${data}` }, signature: parsed };
}

async function call(network, [{ request, signature }], block) {
  const begun = performance.now();
  try {
    const data = await network.ask("eth_call", request, block);
    const took = `${(performance.now() - begun).toFixed(1)} ms`;
    return el("article", { class: "result" }, el("header", {}, el("b", {}, "Returned"), el("span", { class: "quiet" }, took)), returned(signature, data));
  } catch (error) {
    if (error.data === undefined && !/revert/.test(error.message)) throw error;
    return reverted(error.data);
  }
}

async function simulate(network, wanted, block) {
  const payload = { blockStateCalls: [{ calls: wanted.map((each) => each.request) }], traceTransfers: true };
  const [made] = (await network.ask("eth_simulateV1", payload, block)).slice(-1);
  return el("div", {},
    facts(["Block", `${grouped(number(made.number))} · ${clock(made.timestamp)}`], ["Gas", grouped(number(made.gasUsed))], ["Hash", short(made.hash, 22, 8)]),
    made.calls.map((each, at) => simulated(network, each, wanted[at].signature, at)));
}

function simulated(network, { status, gasUsed, returnData, error, logs: all }, signature, at) {
  const moved = all.map(etherMoved).filter(Boolean), events = all.filter((log) => !etherMoved(log));
  const head = el("header", {}, el("b", {}, `Call ${at + 1}`), el("span", { class: `chip ${status === "0x1" ? "sealed" : "failed"}` }, status === "0x1" ? "succeeded" : "failed"),
    el("span", { class: "quiet" }, `${grouped(number(gasUsed))} gas`));
  if (status !== "0x1") {
    const data = returnData !== "0x" ? returnData : error?.data;
    const text = data && data !== "0x" ? revertReason(data) : error?.message ?? error;
    return el("article", { class: "result" }, head, el("p", { class: "reason" }, String(text)));
  }
  return el("article", { class: "result" }, head, returned(signature, returnData),
    moved.map((text) => el("p", { class: "moved" }, text)), events.length ? logs(network, events) : null);
}

/** Decoded values, or the data if it does not match the signature. */
function returned(signature, data) {
  if (!signature?.outputs.length) return el("pre", { tabindex: "0" }, data === "0x" ? "nothing" : data);
  try {
    const values = decode(signature.outputs, data);
    return facts(...signature.outputs.map((type, at) => [
      type.name || type.canonical,
      el("span", {}, el("code", { class: "decoded" }, written(type, values[at])), " ", el("small", {}, scaled(type, values[at]))),
    ]));
  } catch (error) {
    const why = data === "0x" ? "Nothing was returned: there may be no contract at this address." : `Not what the signature says: ${error.message}`;
    return el("div", {}, el("p", { class: "reason" }, why), data === "0x" ? null : el("pre", { tabindex: "0" }, data));
  }
}

const reverted = (data) =>
  el("article", { class: "result" }, el("header", {}, el("b", {}, "Reverted")), el("p", { class: "reason" }, revertReason(data)), data && data !== "0x" ? el("pre", { tabindex: "0" }, data) : null);
