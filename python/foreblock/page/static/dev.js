// A console for a dev chain: send, faucet, mining, snapshots, time and faults.
//
// A control is shown if the service has its method. Each result is told in one place.

import { el, show } from "./dom.js";
import { amount, hex, number, plural, wei } from "./format.js";
import { addressText, nameOf } from "./names.js";
import { heading, link } from "./sheet.js";

const count = (text) => {
  if (!/^\d{1,9}$/.test(text.trim())) throw new Error(`not a whole number: ${text}`);
  return Number(text);
};
const address = (text) => {
  if (!/^0x[0-9a-f]{40}$/i.test(text.trim())) throw new Error(`not an address: ${text}`);
  return text.trim();
};

/** `drop=0.1 tail=0.5` as an object. */
const rates = (text) => Object.fromEntries(text.trim().split(/[\s,]+/).filter(Boolean).map((each) => {
  const [name, rate] = each.split("=");
  if (!(Number(rate) >= 0 && Number(rate) <= 1)) throw new Error(`a rate is 0 to 1, as in drop=0.1: ${each}`);
  return [name, Number(rate)];
}));

// [title, fields as [name, label, value], buttons as [label, method, parameters of the values, result as a text]]
const GROUPS = [
  ["Faucet", [["to", "account", ""], ["ether", "ETH", "100"]], [
    ["Add", "anvil_addBalance", ({ to, ether }) => [address(to), hex(wei(ether))], (_, { to, ether }) => `${ether} ETH added to ${to}`],
  ]],
  ["Mine", [["blocks", "blocks", "1"]], [
    ["Mine", "anvil_mine", ({ blocks }) => [hex(count(blocks))], (_, { blocks }) => `${plural(count(blocks), "block")} mined`],
    ["Close the flashblock", "foreblock_closeFlashblock", () => [], (told) => `flashblock ${number(told.blockNumber)}.${number(told.index)} closed`],
  ]],
  ["Time", [["seconds", "seconds", "3600"]], [
    ["Move forward", "evm_increaseTime", ({ seconds }) => [count(seconds)], (_, { seconds }) => `the next block is ${plural(count(seconds), "second")} later`],
  ]],
  ["Faults", [["depth", "blocks", "2"]], [
    ["Reorg", "foreblock_reorg", ({ depth }) => [count(depth)], (_, { depth }) => `${plural(count(depth), "block")} replaced`],
    ["Drop the last flashblock", "foreblock_dropTail", () => [], () => "the block was sealed without its last flashblock"],
    ["Restart the block", "foreblock_restartBlock", () => [], () => "the block in progress begins again"],
    ["Equivocate", "foreblock_equivocate", () => [], (told) => `another flashblock ${number(told.blockNumber)}.${number(told.index)} was announced`],
  ]],
  ["Random faults", [["rates", "rates, none to stop", "drop=0.05 tail=0.1"]], [
    ["Set", "foreblock_setFaults", (values) => [rates(values.rates)], (_, values) => (values.rates.trim() ? `rates: ${values.rates}` : "no random faults")],
  ]],
];

/** The console of a network; `methods` are those that the service has. */
export function makeDev(network) {
  const body = el("div", { class: "dev" }, el("p", { class: "quiet" }, "…")), told = el("output", { class: "told", "aria-live": "polite" });
  const tell = (...what) => show(told, el("p", { class: "quiet" }, ...what));
  const fail = (error) => show(told, el("p", { class: "reason", role: "alert" }, error.message));
  network.ask("rpc.discover").then(({ methods }) => {
    const known = new Set(methods.map((each) => each.name));
    const groups = GROUPS.map((each) => makeGroup(network, known, each, tell, fail));
    if (known.has("evm_snapshot")) groups.splice(2, 0, makeSnapshots(network, tell, fail));
    show(body, known.has("eth_sendTransaction") ? makeSend(network, tell, fail) : null, groups.filter(Boolean));
  }).catch(fail);
  return el("div", { class: "inner" }, heading("Dev chain", network), told, body,
    el("p", { class: "quiet" }, "These change the chain of this service. No transaction is lost by a fault: it returns to the pool."));
}

let numbers = 0;

function field(name, label, value = "", props = {}) {
  const id = `dev-${name}-${++numbers}`;
  return el("label", { class: "field", for: id }, el("span", {}, label),
    el("input", { id, name, value, autocomplete: "off", spellcheck: "false", ...props }));
}

const valuesOf = (node) => Object.fromEntries([...node.querySelectorAll("[name]")].map((each) => [each.name, each.value]));

function makeGroup(network, known, [title, fields, buttons], tell, fail) {
  const there = buttons.filter(([, method]) => known.has(method));
  if (!there.length) return null;
  const node = el("fieldset", {}, el("legend", {}, title), fields.map((each) => field(...each)),
    there.map(([label, method, parameters, text], at) => el("button", { type: "submit", value: String(at) }, label)));
  const submit = async (event) => {
    event.preventDefault();
    const [, method, parameters, text] = there[Number(event.submitter?.value ?? 0)], values = valuesOf(node);
    try {
      tell(text(await network.ask(method, ...parameters(values)), values));
    } catch (error) {
      fail(error);
    }
  };
  return el("form", { submit }, node);
}

function makeSnapshots(network, tell, fail) {
  const list = el("span", { class: "snapshots" });
  const take = async () => {
    try {
      const id = await network.ask("evm_snapshot"), block = network.latest;
      const revert = async () => {
        try {
          tell((await network.ask("evm_revert", id)) ? `back to snapshot ${number(id)}` : `snapshot ${number(id)} is gone`);
          // Later snapshots are removed with it.
          while (list.lastChild && list.lastChild !== button) list.lastChild.remove();
          button.remove();
        } catch (error) {
          fail(error);
        }
      };
      const button = el("button", { type: "button", click: revert }, `Revert to ${number(id)} (block ${block})`);
      list.append(button);
      tell(`snapshot ${number(id)} taken at block ${block}`);
    } catch (error) {
      fail(error);
    }
  };
  return el("form", { submit: (event) => event.preventDefault() }, el("fieldset", {}, el("legend", {}, "Snapshots"),
    el("button", { type: "button", click: take }, "Take a snapshot"), list));
}

function makeSend(network, tell, fail) {
  const from = el("select", { id: "dev-from", name: "from" },
    network.accounts.map((each) => el("option", { value: each }, `${nameOf(network, each)} · ${addressText(each)}`)));
  const balance = el("small", { class: "quiet" });
  const drawBalance = async () => {
    const found = await network.ask("eth_getBalance", from.value, "pending").catch(() => null);
    balance.textContent = found === null ? "" : `${amount(found)} at pending`;
  };
  from.addEventListener("change", drawBalance);
  drawBalance();
  const node = el("fieldset", {}, el("legend", {}, "Send"),
    el("label", { class: "field from", for: "dev-from" }, el("span", {}, "from ", balance), from),
    field("to", "to, empty to create a contract", network.accounts[1] ?? "", { placeholder: "0x…" }),
    field("value", "ETH", "1", { inputmode: "decimal" }), field("data", "data", "", { placeholder: "0x" }),
    el("button", { class: "main", type: "submit" }, "Send"));
  const submit = async (event) => {
    event.preventDefault();
    const values = valuesOf(node);
    for (const each of node.querySelectorAll("input")) each.removeAttribute("aria-invalid");
    const part = (name, make) => {
      try {
        return values[name].trim() ? { [name]: make(values[name]) } : {};
      } catch (error) {
        node.querySelector(`[name=${name}]`).setAttribute("aria-invalid", "true");
        throw error;
      }
    };
    try {
      const request = { from: values.from, ...part("to", address), ...part("value", (text) => hex(wei(text))), ...part("data", (text) => text.trim()) };
      const sentAt = Date.now(), hash = await network.ask("eth_sendTransaction", request);
      network.life(hash).sentAt = sentAt;
      tell("Accepted: ", link(network, "tx", hash, hash));
      drawBalance();
    } catch (error) {
      fail(error);
    }
  };
  return el("form", { class: "send", submit }, node);
}
