// The sheet at the side: the frame of all details, and their updates.

import { el, facts, show } from "./dom.js";
import { addressText, nameOf, shortAddress } from "./names.js";

const LEAST = 350; // ms between two updates

/** The head of a sheet: a title, its network, a state as [class, text], and links. */
export function heading(title, network, state, ...links) {
  return el("header", {},
    el("h2", { tabindex: "-1" }, title),
    el("span", { class: "chip" }, network.name),
    state ? el("span", { class: `chip ${state[0]}` }, state[1]) : null,
    el("span", { class: "links" }, links, el("a", { href: "#/", class: "close", title: "Close (Esc)", "aria-label": "Close" }, "✕")));
}

export function link(network, kind, id, text, there = true) {
  if (!there) return el("span", { class: "off" }, text);
  return el("a", { href: `#/${network.name}/${kind}/${id}` }, text);
}

/** An address with its name if it is known, and with its checksum. */
export function addressLink(network, address, brief = false) {
  const name = nameOf(network, address), text = addressText(address);
  return el("span", { class: "address" }, el("a", { href: `#/${network.name}/address/${address.toLowerCase()}`, title: text },
    brief ? shortAddress(network, address) : text), !brief && name ? el("small", {}, ` ${name}`) : null);
}

/** Decoded arguments; addresses are links. */
export const argumentFacts = (network, pairs) =>
  facts(...pairs.map(([name, value]) => [name, /^0x[0-9a-fA-F]{40}$/.test(value) ? addressLink(network, value) : value]));

export function missing(sheet, title, network, why, waits = false) {
  show(sheet, heading(title, network), el("p", { class: "empty" }, why),
    waits ? el("p", { class: "empty waiting" }, "Checked again with every flashblock.") : null);
  return { live: true, events: ["flashblock", "sealed", "state"] };
}

/** Parts that somebody has opened stay, with what was requested for them. */
function keepOpened(before, after) {
  const made = [...after.querySelectorAll("details.trace")];
  for (const old of before.querySelectorAll("details.trace[open]")) {
    made.find((each) => each.firstChild.textContent === old.firstChild.textContent)?.replaceWith(old);
  }
}

/**
 * Keeps a sheet up to date: `render` draws it and returns the events of the network that change
 * it. One runs at a time; of the events in between only the last counts.
 */
export class Sheet {
  constructor(node) {
    this.node = node;
    this.shown = 0;
  }

  async open(network, render) {
    const shown = this.#begin();
    let busy = false, again = false, last = 0, place = 0, later = 0;
    const draw = async () => {
      if (busy) {
        again = true;
        return null;
      }
      busy = true;
      const inner = el("div", { class: "inner" });
      const kept = await render(inner).catch((error) => missing(inner, "No answer", network, error.message));
      busy = false;
      if (shown !== this.shown) return null;
      if (last) {
        place = this.node.scrollTop;
        keepOpened(this.node, inner);
      }
      last = performance.now();
      show(this.node, inner);
      this.node.scrollTop = place;
      return kept;
    };
    let kept = await draw();
    if (shown !== this.shown) return;
    this.node.querySelector("h2")?.focus({ preventScroll: true });
    const listen = async ({ detail }) => {
      if (!kept?.live || !kept.events.includes(detail)) return;
      clearTimeout(later);
      if (detail === "flashblock" && this.#isRead()) return;
      const early = LEAST - (performance.now() - last);
      if (detail === "flashblock" && early > 0) {
        later = setTimeout(() => shown === this.shown && listen({ detail }), early);
        return;
      }
      kept = (await draw()) ?? kept;
      if (again) {
        again = false;
        kept = (await draw()) ?? kept;
      }
    };
    network.addEventListener("change", listen);
    this.stop = () => network.removeEventListener("change", listen);
  }

  /** True if the user has opened a part of it, or selects a text in it. */
  #isRead() {
    const selection = document.getSelection();
    const selects = selection && !selection.isCollapsed && this.node.contains(selection.anchorNode);
    return selects || this.node.querySelector("details[open]") !== null;
  }

  /** Show an element that is drawn once and updates itself. */
  hold(node) {
    this.#begin();
    show(this.node, node);
    node.querySelector("input, h2")?.focus({ preventScroll: true });
  }

  /** Stop updates; the element stays until another one is drawn. */
  #begin() {
    this.stop?.();
    this.stop = null;
    this.node.hidden = false;
    document.body.classList.add("with-sheet");
    return ++this.shown;
  }

  close() {
    this.stop?.();
    this.stop = null;
    this.shown += 1;
    this.node.hidden = true;
    this.node.replaceChildren();
    document.body.classList.remove("with-sheet");
  }
}
