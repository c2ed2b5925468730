// The page: finds the networks of the service, and shows the view that the address after # names.

import { showAccount } from "./account.js";
import { showBlock } from "./block.js";
import { makeCallForm } from "./call.js";
import { makeDev } from "./dev.js";
import { listenToKeys } from "./keys.js";
import { watchLatency } from "./latency.js";
import { showNetworks } from "./live.js";
import { Network } from "./network.js";
import { find } from "./search.js";
import { Sheet } from "./sheet.js";
import { showTransaction } from "./transaction.js";

const HIDDEN_FOR = 60_000; // ms after which a page in the background disconnects
const AGAIN = 1_000;

const base = new URL("./", location.href.split("#")[0]);
const query = document.getElementById("query"), unfound = document.getElementById("unfound");
const sheet = new Sheet(document.getElementById("sheet"));
let networks = [];
let begun = 0; // searches and changes of the route: a late answer to an earlier one is dropped

/** The service's networks: the one at this address first, the others at their own ports. */
async function networksOf() {
  const listed = await (await fetch(new URL("ui/networks.json", base))).json();
  const scheme = base.protocol === "https:" ? "wss:" : "ws:";
  const here = Object.assign(new URL(base), { protocol: scheme });
  const key = new URLSearchParams(location.search).get("key");
  if (key) here.searchParams.set("key", key); // of the API, which a WebSocket cannot have in a header
  return listed.networks.map(({ name, port }) => {
    if (name === listed.here) return new Network({ name, socket: here.href, http: base.href });
    const there = Object.assign(new URL(here), { port, pathname: "/" });
    return new Network({ name, socket: there.href, http: "" });
  });
}

async function start() {
  try {
    networks = await networksOf();
  } catch {
    setTimeout(start, AGAIN);
    return;
  }
  showNetworks(document.getElementById("networks"), networks);
  for (const network of networks) {
    network.addEventListener("change", ({ detail }) => detail === "state" && showDev());
    network.start();
  }
  watchLatency(new URL("metrics", base), networks);
  await Promise.race(networks.map((network) => new Promise((done) => network.addEventListener("change", done, { once: true }))));
  route();
}

/** The console of dev chains is linked if there is one. */
function showDev() {
  const found = networks.find((each) => each.isDev), to = document.getElementById("to-dev");
  to.hidden = !found;
  if (found) to.href = `#/${found.name}/dev`;
}

// Routes: #/NETWORK/block/…, tx/…, address/…, call/…

const VIEWS = { block: showBlock, tx: showTransaction, address: showAccount };

function route() {
  begun += 1;
  unfound.hidden = true;
  const [name, kind, id] = decodeURIComponent(location.hash.slice(2)).split("/");
  const network = networks.find((each) => each.name === name) ?? networks[0];
  if (!network || !location.hash.slice(2)) return sheet.close();
  document.title = kind ? `${kind} ${id ?? ""} · foreblock`.slice(0, 60) : "foreblock";
  if (name === "call" || kind === "call") return sheet.hold(makeCallForm(network, id ?? ""));
  if (kind === "dev" && network.isDev) return sheet.hold(makeDev(network));
  const view = VIEWS[kind];
  if (!view || !id) return sheet.close();
  return sheet.open(network, (node) => view(node, network, id, networks));
}

// Search.

async function search(event) {
  event.preventDefault();
  const mine = ++begun;
  unfound.hidden = true;
  query.blur();
  try {
    const connected = networks.filter((network) => network.ready);
    const found = await find(query.value, connected);
    if (mine === begun) location.hash = found;
  } catch (error) {
    if (mine !== begun) return;
    query.focus();
    query.select();
    unfound.textContent = error.message;
    unfound.hidden = false;
  }
}

// Light and dark: the system's, until the user chooses.

function switchTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const next = (document.documentElement.dataset.theme ?? (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  remember("theme", next);
}

function remember(name, value) {
  try {
    localStorage.setItem(`foreblock.${name}`, value);
  } catch {
    // Storage may be forbidden; then the choice is not kept.
  }
}

function restoreTheme() {
  try {
    const theme = localStorage.getItem("foreblock.theme");
    if (theme) document.documentElement.dataset.theme = theme;
  } catch {
    // As above.
  }
}

/** Disconnect while the page is hidden. */
function watchVisibility() {
  let timer = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(() => networks.forEach((each) => each.connection.close()), HIDDEN_FOR);
    else networks.filter((each) => each.connection.state === "paused").forEach((each) => each.connection.open());
  });
}

function close(event) {
  unfound.hidden = true;
  query.value = "";
  if (document.activeElement === query) query.blur();
  else if (location.hash.slice(2)) location.hash = "#/";
  event?.preventDefault();
}

restoreTheme();
document.getElementById("search").addEventListener("submit", search);
for (const event of ["input", "focus"]) query.addEventListener(event, () => (unfound.hidden = true));
query.addEventListener("click", () => query.select());
document.getElementById("theme").addEventListener("click", switchTheme);
addEventListener("hashchange", route);
watchVisibility();
listenToKeys({
  search: () => query.select(),
  close,
  pending: () => networks[0] && (location.hash = `#/${networks[0].name}/block/pending`),
  call: () => (location.hash = "#/call"),
  dev: () => document.getElementById("to-dev").click(),
  theme: switchTheme,
});
start();
