// Names of the calls, events and errors of common interfaces.

import { decode, parseSignature } from "./abi.js";
import { decimal, ether, short } from "./format.js";

const FUNCTIONS = {
  "0xa9059cbb": "transfer(address to, uint256 amount) returns (bool)",
  "0x095ea7b3": "approve(address spender, uint256 amount) returns (bool)",
  "0x23b872dd": "transferFrom(address from, address to, uint256 amount) returns (bool)",
  "0x70a08231": "balanceOf(address owner) returns (uint256)",
  "0xd0e30db0": "deposit()",
  "0x2e1a7d4d": "withdraw(uint256 amount)",
  "0x82ad56cb": "aggregate3((address target, bool allowFailure, bytes callData)[] calls) returns ((bool success, bytes returnData)[])",
};

const EVENTS = {
  "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef": "Transfer(address indexed from, address indexed to, uint256 amount)",
  "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925": "Approval(address indexed owner, address indexed spender, uint256 amount)",
  "0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c": "Deposit(address indexed to, uint256 amount)",
  "0x7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65": "Withdrawal(address indexed from, uint256 amount)",
};

// https://docs.soliditylang.org/en/latest/control-structures.html#panic-via-assert-and-error-via-require
const PANICS = {
  0x00: "a panic of the compiler", 0x01: "an assertion failed", 0x11: "arithmetic overflow",
  0x12: "division by zero", 0x21: "not a value of the enum", 0x22: "badly encoded storage",
  0x31: "pop of an empty array", 0x32: "index out of bounds", 0x41: "out of memory", 0x51: "call of an empty function",
};

export const SIGNATURES = [
  "balanceOf(address) returns (uint256)", "totalSupply() returns (uint256)", "name() returns (string)",
  "symbol() returns (string)", "decimals() returns (uint8)", "allowance(address,address) returns (uint256)",
  "ownerOf(uint256) returns (address)", "transfer(address,uint256) returns (bool)",
  "approve(address,uint256) returns (bool)", "getBlockNumber() returns (uint256)",
];

/** The reason of a revert as a text, from the returned data. */
export function revertReason(data) {
  if (!data || data === "0x") return "without a reason";
  try {
    if (data.startsWith("0x08c379a0")) return decode(parseSignature("Error(string)").inputs, "0x" + data.slice(10))[0];
    if (data.startsWith("0x4e487b71")) {
      const [code] = decode(parseSignature("Panic(uint256)").inputs, "0x" + data.slice(10));
      return `panic 0x${code.toString(16).padStart(2, "0")}: ${PANICS[Number(code)] ?? "unknown"}`;
    }
  } catch {
    // The data does not decode.
  }
  return data.length >= 10 ? `error ${data.slice(0, 10)} with ${(data.length - 10) / 2} bytes` : `data ${data}`;
}

/** Name and arguments of a call with known data, or null. */
export function knownCall(data) {
  const signature = FUNCTIONS[data?.slice(0, 10)];
  if (!signature) return null;
  try {
    const parsed = parseSignature(signature);
    return { name: parsed.name, arguments: named(parsed.inputs, decode(parsed.inputs, "0x" + data.slice(10))) };
  } catch {
    return null;
  }
}

/** Name and arguments of a log with a known topic, or null. */
export function knownEvent({ topics, data }) {
  const signature = EVENTS[topics[0]];
  if (!signature) return null;
  try {
    const { name, inputs } = parseSignature(signature);
    // Tokens with numbers index the last argument too.
    const indexed = inputs.slice(0, topics.length - 1), rest = inputs.slice(topics.length - 1);
    if (indexed.length !== topics.length - 1) return null;
    const values = [...decode(indexed, "0x" + topics.slice(1).map((topic) => topic.slice(2)).join("")), ...decode(rest, data)];
    return { name, arguments: named(inputs, values) };
  } catch {
    return null;
  }
}

/** [name or type, value as text] */
export const named = (types, values) =>
  types.map((type, at) => [type.name || type.canonical, `${written(type, values[at])} ${scaled(type, values[at])}`.trim()]);

/** A decoded value as text. */
export function written(type, value) {
  switch (type.kind) {
    case "array": return `[${value.map((each) => written(type.of, each)).join(", ")}]`;
    case "tuple": return `(${value.map((each, at) => written(type.parts[at], each)).join(", ")})`;
    case "string": return JSON.stringify(value);
    default: return String(value);
  }
}

/** A large number with the 18 decimals that most tokens have, or an empty text. */
export function scaled(type, value) {
  if (type.kind !== "uint" || value < 10n ** 13n || value >= 1n << 128n) return "";
  return `≈ ${decimal(value, 18, 6)} with 18 decimals`;
}

/** The transfers in logs of traced ether (eth_simulateV1 with traceTransfers). */
export function etherMoved(log) {
  if (log.address !== "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee") return null;
  const end = (topic) => "0x" + topic.slice(26);
  return `${ether(log.data, 6)} from ${short(end(log.topics[1]))} to ${short(end(log.topics[2]))}`;
}
