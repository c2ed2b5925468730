// ABIs that somebody has pasted for contracts, kept in this browser, as lists of signatures.

const KEY = "foreblock.abis", MOST = 200_000; // characters of all

let kept = {};
try {
  kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
} catch {
  // Storage may be forbidden; then ABIs are kept until the page is closed.
}

const typeOf = ({ type, components }) => (type.startsWith("tuple") ? `(${components.map(argument).join(", ")})${type.slice(5)}` : type);
const argument = (each) => `${typeOf(each)}${each.indexed ? " indexed" : ""}${each.name ? ` ${each.name}` : ""}`;

/** Signatures such as `function f(uint256 a) returns (bool)` of an ABI as JSON, or one in each line. */
export function readAbi(text) {
  if (!/^\s*[[{]/.test(text)) {
    return text.split(/\n|;/).map((each) => each.trim()).filter(Boolean)
      .map((each) => (/^(function|event|error)\s/.test(each) ? each : `function ${each}`));
  }
  const parsed = JSON.parse(text), list = Array.isArray(parsed) ? parsed : parsed.abi;
  if (!Array.isArray(list)) throw new Error("an ABI is a list, or has one as \"abi\"");
  return list.filter(({ type }) => ["function", "event", "error"].includes(type)).map(({ type, name, inputs = [], outputs }) =>
    `${type} ${name}(${inputs.map(argument).join(", ")})${outputs?.length ? ` returns (${outputs.map(argument).join(", ")})` : ""}`);
}

export const signaturesOf = (address) => kept[address?.toLowerCase()] ?? [];
export const allSignatures = () => Object.values(kept).flat();

/** Keep the signatures of a contract; an empty list forgets them. */
export function keepAbi(address, signatures) {
  const next = { ...kept, [address.toLowerCase()]: signatures };
  if (!signatures.length) delete next[address.toLowerCase()];
  const text = JSON.stringify(next);
  if (text.length > MOST) throw new Error("the ABIs are too large to be kept");
  kept = next;
  try {
    localStorage.setItem(KEY, text);
  } catch {
    // As above.
  }
}
