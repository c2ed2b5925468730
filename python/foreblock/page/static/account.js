// An account at latest and at pending, side by side, and its last transactions if they are indexed.

import { copyable, el, facts, show } from "./dom.js";
import { decode, parseSignature, parseTypes } from "./abi.js";
import { keepAbi, readAbi, signaturesOf } from "./abis.js";
import { amount, bytes, decimal, ether, grouped, number, plural, short } from "./format.js";
import { knownCall } from "./known.js";
import { addressText, nameOf, shortAddress } from "./names.js";
import { addressLink, heading, link, missing } from "./sheet.js";

const BALANCE = "0x70a08231", SYMBOL = "0x95d89b41", DECIMALS = "0x313ce567", NAME = "0x06fdde03", SUPPLY = "0x18160ddd";
const TOKENS = ["0x7e57000000000000000000000000000000000020", "0x4200000000000000000000000000000000000006"];

/** Name, symbol, decimals and supply of a token, or null. */
async function token(network, address) {
  const [name, symbol, decimals, supply] = await network.askAll(...[NAME, SYMBOL, DECIMALS, SUPPLY].map((input) => ["eth_call", { to: address, input }, "pending"]));
  const read = (type, data) => {
    try {
      return decode(parseTypes(type), data)[0];
    } catch {
      return null;
    }
  };
  const found = { name: read("string", name), symbol: read("string", symbol), decimals: Number(read("uint8", decimals) ?? 0), supply: read("uint256", supply) };
  return found.symbol === null || found.supply === null ? null : found;
}

/** What an account has of known tokens, as texts. */
async function balances(network, address) {
  const calls = TOKENS.flatMap((to) => [{ to, input: BALANCE + address.slice(2).padStart(64, "0") }, { to, input: SYMBOL }, { to, input: DECIMALS }]);
  const found = await network.askAll(...calls.map((call) => ["eth_call", call, "pending"]));
  return TOKENS.flatMap((to, at) => {
    const [balance, symbol, decimals] = found.slice(3 * at, 3 * at + 3);
    try {
      const value = BigInt(balance);
      return value ? [el("div", {}, `${decimal(value, Number(decimals), 6)} `, link(network, "address", to, decode(parseTypes("string"), symbol)[0]))] : [];
    } catch {
      return [];
    }
  });
}

/** A form for the ABI of a contract, which is kept in this browser. */
function abiForm(address, network) {
  const known = signaturesOf(address), told = el("p", { class: "quiet", role: "status" });
  const text = el("textarea", { name: "abi", rows: "5", spellcheck: "false", "aria-label": "ABI of this contract", placeholder: "[{\"type\":\"function\",…}], or event Moved(address indexed who)" }, known.join("\n"));
  const submit = (event) => {
    event.preventDefault();
    try {
      const read = readAbi(text.value);
      for (const each of read) parseSignature(each);
      keepAbi(address, read);
      text.removeAttribute("aria-invalid");
      told.textContent = read.length ? `${plural(read.length, "signature")} kept in this browser` : "forgotten";
      network.changed("state");
    } catch (error) {
      text.setAttribute("aria-invalid", "true");
      told.textContent = error.message;
    }
  };
  return el("details", {}, el("summary", {}, known.length ? `ABI: ${plural(known.length, "signature")}` : "Paste an ABI"),
    el("form", { class: "abi", submit }, text, el("button", { type: "submit" }, "Keep"), told));
}

export async function showAccount(sheet, network, address) {
  const methods = ["eth_getBalance", "eth_getTransactionCount"], names = ["latest", "pending"];
  const found = await network.askAll(
    ...names.flatMap((name) => methods.map((method) => [method, address, name])),
    ["eth_getCode", address, "pending"], ["ots_searchTransactionsBefore", address, 0, 10],
  );
  const [balance, nonce, pendingBalance, pendingNonce, code, searched] = found;
  const error = found.slice(0, 5).find((each) => each instanceof Error);
  if (error) return missing(sheet, `Account ${short(address)}`, network, error.message);
  const [asToken, tokens] = await Promise.all([code === "0x" ? null : token(network, address), balances(network, address)]);
  const gained = BigInt(pendingBalance) - BigInt(balance);
  show(sheet,
    heading(code === "0x" ? "Account" : "Contract", network, null, link(network, "call", address, "Call")),
    facts(["Address", copyable(addressText(address))], ["Name", nameOf(network, address)],
      ["Token", asToken ? `${asToken.name ?? ""} (${asToken.symbol}), ${plural(asToken.decimals, "decimal")}` : ""],
      ["Supply", asToken ? `${decimal(asToken.supply, asToken.decimals, 6)} ${asToken.symbol}` : ""],
      ["Tokens", tokens.length ? el("span", {}, tokens) : ""]),
    el("table", { class: "sides" },
      el("thead", {}, el("tr", {}, el("td"), el("th", { class: "sealed" }, "latest"), el("th", { class: "pending" }, "pending"))),
      el("tbody", {},
        el("tr", {}, el("th", {}, "Balance"), el("td", {}, ether(balance)),
          el("td", {}, ether(pendingBalance), gained ? el("small", { class: gained < 0n ? "less" : "more" }, `${gained < 0n ? "" : "+"}${decimal(gained, 18, 9)}`) : null)),
        el("tr", {}, el("th", {}, "Nonce"), el("td", {}, grouped(number(nonce))), el("td", {}, grouped(number(pendingNonce)))))),
    facts(["Code", code === "0x" ? "none" : delegate(network, code)]),
    code === "0x" ? null : el("details", {}, el("summary", {}, "Show the code"), el("pre", { tabindex: "0" }, code.slice(0, 20_000))),
    code === "0x" ? null : abiForm(address, network),
    transactions(network, searched));
  return { live: true, events: ["flashblock", "sealed"] };
}

/** EIP-7702: code that names another account. */
function delegate(network, code) {
  if (!code.startsWith("0xef0100")) return bytes(code);
  const to = "0x" + code.slice(8);
  return el("span", {}, "delegates to ", addressLink(network, to));
}

function transactions(network, searched) {
  if (searched instanceof Error || !searched?.txs?.length) return null;
  return el("section", {}, el("h3", {}, "Last transactions"), el("div", { class: "rows" }, searched.txs.map((each) =>
    el("a", { class: "row", href: `#/${network.name}/tx/${each.hash}` },
      el("span", { class: "number" }, grouped(number(each.blockNumber))),
      el("code", {}, `${each.hash.slice(0, 10)}…`),
      el("span", { class: "way" }, `${shortAddress(network, each.from)} → ${each.to ? shortAddress(network, each.to) : "new contract"}`),
      el("span", { class: "value" }, each.value === "0x0" ? knownCall(each.input, each.to)?.name ?? "" : amount(each.value, 4))))));
}
