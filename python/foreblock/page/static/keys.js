// Keys: rows are links, so moving is moving the focus.

import { el, show } from "./dom.js";

const HELP = [
  ["/", "search"], ["j, k", "next, previous row"], ["h, l", "network to the left, to the right"],
  ["Enter", "open"], ["Esc", "close, leave the search"], ["p", "the block in progress"], ["c", "call"], ["d", "dev chain"],
  ["t", "light or dark"], ["?", "this help"],
];

/** `actions`: search, close, pending, call, dev, theme. */
export function listenToKeys(actions) {
  const dialog = document.getElementById("help");
  show(dialog, el("h2", {}, "Keys"),
    el("dl", { class: "facts" }, HELP.flatMap(([key, does]) => [el("dt", {}, key.split(", ").map((each) => el("kbd", {}, each))), el("dd", {}, does)])),
    el("form", { method: "dialog", submit: (event) => { event.preventDefault(); dialog.close(); } }, el("button", {}, "Close")));
  const help = () => (dialog.open ? dialog.close() : dialog.showModal());
  document.getElementById("keys").addEventListener("click", help);
  const keys = {
    "/": actions.search, j: () => step(1), k: () => step(-1), h: () => turn(-1), l: () => turn(1),
    p: actions.pending, c: actions.call, d: actions.dev, t: actions.theme, "?": help,
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !dialog.open) return actions.close(event);
    const typing = event.target.matches("input, textarea, select");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || (dialog.open && event.key !== "?")) return null;
    const action = keys[event.key];
    if (!action) return null;
    event.preventDefault();
    return action();
  });
}

const visible = (node) => node.getClientRects().length > 0;

/** The lists in which rows are stepped through: those of the sheet while it is open. */
function rows() {
  const sheet = document.getElementById("sheet");
  const inSheet = sheet.hidden ? [] : [...sheet.querySelectorAll("a.row")];
  return inSheet.length ? inSheet : [...(column()?.querySelectorAll("a.row") ?? [])].filter(visible);
}

function column() {
  const columns = [...document.querySelectorAll(".network")];
  return document.activeElement?.closest(".network") ?? columns[0];
}

function step(by) {
  const all = rows(), at = all.indexOf(document.activeElement);
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function turn(by) {
  const columns = [...document.querySelectorAll(".network")], at = columns.indexOf(column());
  columns[Math.min(columns.length - 1, Math.max(0, at + by))]?.querySelector("a.row")?.focus();
}
