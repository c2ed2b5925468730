// Elements without markup: every text from the chain goes through textContent.

const SVG = "http://www.w3.org/2000/svg";

/** An element. Props that are functions are listeners; `class`, `data` and `style` are special. */
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** An element of SVG. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name === "style") for (const each in value) node.style.setProperty(each, value[each]);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return node;
}

/** Replace all children. */
export function show(node, ...children) {
  node.replaceChildren(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return node;
}

/** Set a text if it differs, to avoid a needless layout. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * A list whose rows keep their elements, and with them the focus: `items` in order, each with a
 * `key`; `make` makes a new row and `update` brings an old one up to date.
 */
export function keyed(parent, items, key, make, update = () => {}) {
  const old = new Map([...parent.children].map((row) => [row.dataset.key, row]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let row = old.get(name);
    old.delete(name);
    if (row) update(row, item);
    else {
      row = make(item);
      row.dataset.key = name;
    }
    if (row === place) place = place.nextElementSibling;
    else parent.insertBefore(row, place);
  }
  for (const row of old.values()) row.remove();
}

/** Name and value pairs; pairs without a value are left out. */
export function facts(...pairs) {
  const list = el("dl", { class: "facts" });
  for (const [name, value] of pairs.filter(Boolean)) {
    if (value === null || value === undefined || value === "") continue;
    list.append(el("dt", {}, name), el("dd", {}, value));
  }
  return list;
}

/** A text that is copied by a click. */
export function copyable(text, shown = text) {
  const copy = async (event) => {
    event.preventDefault();
    try {
      await navigator.clipboard.writeText(text);
      button.dataset.done = "copied";
    } catch {
      button.dataset.done = "not copied";
    }
    setTimeout(() => delete button.dataset.done, 1200);
  };
  const button = el("button", { class: "copy", type: "button", title: "Copy", "aria-label": "Copy", click: copy });
  return el("span", { class: "copyable" }, el("code", { title: text }, shown), button);
}
