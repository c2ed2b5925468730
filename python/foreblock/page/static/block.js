// A block: sealed, in progress, or after one of its flashblocks.

import { copyable, el, facts, show } from "./dom.js";
import { amount, clock, compact, duration, gwei, grouped, hex, number, plural, share, short } from "./format.js";
import { knownCall } from "./known.js";
import { shortAddress } from "./names.js";
import { addressLink, heading, link, missing } from "./sheet.js";

const PAGE = 100; // transactions

/** The block parameter: a number, `N.i` for a flashblock, a hash or a tag. */
function parameter(network, id) {
  if (/^0x[0-9a-f]{64}$/i.test(id)) return id;
  const [, block, index] = /^(\d+)(?:\.(\d+))?$/.exec(id) ?? [];
  if (block === undefined) return id; // latest, pending
  if (index !== undefined) return { blockNumber: hex(block), flashblockIndex: hex(index) };
  return network.isSealed(Number(block)) ? hex(block) : "pending";
}

export async function showBlock(sheet, network, id) {
  const wanted = parameter(network, id);
  const method = typeof wanted === "string" && wanted.length === 66 ? "eth_getBlockByHash" : "eth_getBlockByNumber";
  const block = await network.ask(method, wanted, true).catch((error) => error);
  if (!block || block instanceof Error || (wanted === "pending" && /^\d+$/.test(id) && number(block.number) !== Number(id))) {
    return missing(sheet, `Block ${id}`, network, block instanceof Error ? block.message : "There is no such block.");
  }
  const index = typeof wanted === "object" ? number(wanted.flashblockIndex) : null;
  const at = number(block.number), sealed = index === null && network.isSealed(at);
  const known = (await network.flashblocksOf(at).catch(() => [])).map((each) => each.count);
  // Flashblocks that arrived after the response are left to the next one.
  const counts = index === null ? known.filter((count) => count <= block.transactions.length) : known;
  const seconds = Math.max(0, Date.now() / 1000 - number(block.timestamp));
  show(sheet,
    heading(`Block ${grouped(at)}${index === null ? "" : `.${index}`}`, network, state(sealed, index, counts),
      link(network, "block", at - 1, "←", at > 0), link(network, "block", at + 1, "→")),
    facts(
      ["Hash", copyable(block.hash, short(block.hash, 22, 8))],
      ["Parent", link(network, "block", block.parentHash, short(block.parentHash, 22, 8))],
      ["Time", `${clock(block.timestamp)}${sealed ? `, ${duration(seconds)} ago` : ""}`],
      ["Gas", el("span", {}, `${grouped(number(block.gasUsed))} of ${grouped(number(block.gasLimit))}`,
        el("span", { class: "meter wide", style: { "--part": number(block.gasUsed) / number(block.gasLimit) } }),
        share(number(block.gasUsed), number(block.gasLimit)))],
      ["Base fee", block.baseFeePerGas ? gwei(block.baseFeePerGas) : ""],
      ["Fee recipient", addressLink(network, block.miner)],
      ["State root", /^0x0+$/.test(block.stateRoot) ? "not known before the seal" : copyable(block.stateRoot, short(block.stateRoot, 22, 8))],
      ["Flashblocks", counts.length ? flashblocks(network, at, counts, index) : ""],
    ),
    el("h3", {}, plural(block.transactions.length, "transaction")),
    transactions(network, block.transactions),
  );
  return { live: !sealed && index === null, events: ["flashblock", "sealed"] };
}

function state(sealed, index, counts) {
  if (sealed) return ["sealed", "sealed"];
  if (index !== null) return ["pending", `after flashblock ${index}`];
  return ["pending", counts.length ? `in progress, flashblock ${counts.length - 1}` : "in progress"];
}

function flashblocks(network, block, counts, index) {
  return el("span", { class: "flashblocks" }, counts.map((count, at) => {
    const gained = count - (counts[at - 1] ?? 0);
    const title = `after flashblock ${at}: ${plural(count, "transaction")}, ${gained} of them new`;
    const chosen = at === index ? "page" : false;
    return el("a", { href: `#/${network.name}/block/${block}.${at}`, title, "aria-current": chosen }, `${at}`, el("small", {}, `+${gained}`));
  }));
}

function transactions(network, all) {
  const rows = el("div", { class: "rows" });
  const more = el("button", { type: "button", class: "more", click: () => add() });
  const add = () => {
    const shown = rows.childElementCount;
    rows.append(...all.slice(shown, shown + PAGE).map((each) => row(network, each)));
    more.hidden = rows.childElementCount >= all.length;
    more.textContent = `${grouped(all.length - rows.childElementCount)} more`;
  };
  add();
  return el("div", { class: "transactions" }, rows, more);
}

function row(network, each) {
  const to = each.to === null ? "new contract" : shortAddress(network, each.to);
  return el("a", { class: "row", href: `#/${network.name}/tx/${each.hash}` },
    el("span", { class: "number" }, `${number(each.transactionIndex)}`),
    el("code", {}, `${each.hash.slice(0, 10)}…`),
    el("span", { class: "way" }, each.type === "0x7e" ? `deposit → ${to}` : `${shortAddress(network, each.from)} → ${to}`),
    el("span", { class: "value" }, each.value !== "0x0" ? amount(each.value, 4) : knownCall(each.input, each.to)?.name ?? `${compact((each.input.length - 2) / 2)} B`));
}
