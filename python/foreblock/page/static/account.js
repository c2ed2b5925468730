// An account at latest and at pending, side by side, and its last transactions if they are indexed.

import { copyable, el, facts, show } from "./dom.js";
import { bytes, decimal, ether, grouped, number, short } from "./format.js";
import { heading, link, missing } from "./sheet.js";

export async function showAccount(sheet, network, address) {
  const methods = ["eth_getBalance", "eth_getTransactionCount"], names = ["latest", "pending"];
  const found = await network.askAll(
    ...names.flatMap((name) => methods.map((method) => [method, address, name])),
    ["eth_getCode", address, "pending"], ["ots_searchTransactionsBefore", address, 0, 10],
  );
  const [balance, nonce, pendingBalance, pendingNonce, code, searched] = found;
  const error = found.slice(0, 5).find((each) => each instanceof Error);
  if (error) return missing(sheet, `Account ${short(address)}`, network, error.message);
  const gained = BigInt(pendingBalance) - BigInt(balance);
  show(sheet,
    heading(code === "0x" ? "Account" : "Contract", network, null, link(network, "call", address, "Call")),
    facts(["Address", copyable(address)]),
    el("table", { class: "sides" },
      el("thead", {}, el("tr", {}, el("th"), el("th", { class: "sealed" }, "latest"), el("th", { class: "pending" }, "pending"))),
      el("tbody", {},
        el("tr", {}, el("th", {}, "Balance"), el("td", {}, ether(balance)),
          el("td", {}, ether(pendingBalance), gained ? el("small", { class: gained < 0n ? "less" : "more" }, `${gained < 0n ? "" : "+"}${decimal(gained, 18, 9)}`) : null)),
        el("tr", {}, el("th", {}, "Nonce"), el("td", {}, grouped(number(nonce))), el("td", {}, grouped(number(pendingNonce)))))),
    facts(["Code", code === "0x" ? "none" : delegate(network, code)]),
    code === "0x" ? null : el("details", {}, el("summary", {}, "Show the code"), el("pre", {}, code.slice(0, 20_000))),
    transactions(network, searched));
  return { live: true, events: ["flashblock", "sealed"] };
}

/** EIP-7702: code that names another account. */
function delegate(network, code) {
  if (!code.startsWith("0xef0100")) return bytes(code);
  const to = "0x" + code.slice(8);
  return el("span", {}, "delegates to ", link(network, "address", to, to));
}

function transactions(network, searched) {
  if (searched instanceof Error || !searched?.txs?.length) return null;
  return el("section", {}, el("h3", {}, "Last transactions"), el("div", { class: "rows" }, searched.txs.map((each) =>
    el("a", { class: "row", href: `#/${network.name}/tx/${each.hash}` },
      el("span", { class: "number" }, grouped(number(each.blockNumber))),
      el("code", {}, `${each.hash.slice(0, 10)}…`),
      el("span", { class: "way" }, `${short(each.from, 8, 4)} → ${each.to ? short(each.to, 8, 4) : "new contract"}`),
      el("span", { class: "value" }, each.value === "0x0" ? "" : ether(each.value, 4))))));
}
