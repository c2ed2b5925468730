// Resolve a search text to the route of a block, a transaction or an address.

const NAMES = ["latest", "pending", "safe", "finalized", "earliest"];

/** The route in the first network that has it. Throws with a reason. */
export async function find(text, networks) {
  const wanted = text.trim().replace(/,/g, ""), [first] = networks;
  if (!first) throw new Error("No network is connected.");
  if (/^\d+(\.\d+)?$/.test(wanted) || NAMES.includes(wanted)) return `#/${first.name}/block/${wanted}`;
  if (/^0x[0-9a-f]{40}$/i.test(wanted)) return `#/${(await holder(wanted, networks)).name}/address/${wanted.toLowerCase()}`;
  if (/^(0x)?[0-9a-f]{64}$/i.test(wanted)) return byHash(wanted.toLowerCase().replace(/^(0x)?/, "0x"), networks);
  if (/^0x[0-9a-f]{1,13}$/i.test(wanted)) return `#/${first.name}/block/${Number(wanted)}`;
  throw new Error("A block number, a flashblock (37.4), a hash or an address is needed.");
}

async function byHash(hash, networks) {
  for (const network of networks) {
    const [transaction, block] = await network.askAll(["eth_getTransactionByHash", hash], ["eth_getBlockByHash", hash, false]);
    if (transaction && !(transaction instanceof Error)) return `#/${network.name}/tx/${hash}`;
    if (block && !(block instanceof Error)) return `#/${network.name}/block/${hash}`;
  }
  return `#/${networks[0].name}/tx/${hash}`; // it may come yet
}

/** The first network on which an address has done anything. */
async function holder(address, networks) {
  for (const network of networks) {
    const found = await network.askAll(["eth_getTransactionCount", address, "pending"], ["eth_getBalance", address, "pending"], ["eth_getCode", address, "pending"]);
    if (found.some((each) => typeof each === "string" && !/^0x0*$/.test(each))) return network;
  }
  return networks[0];
}
