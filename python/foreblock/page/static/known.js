// Names of the calls, events and errors of common interfaces, and of pasted ABIs.

import { canonical, decode, parseSignature } from "./abi.js";
import { allSignatures, signaturesOf } from "./abis.js";
import { decimal, ether, short } from "./format.js";
import { keccak } from "./keccak.js";
import { addressText } from "./names.js";

const COMMON = `
function transfer(address to, uint256 amount) returns (bool)
function approve(address spender, uint256 amount) returns (bool)
function transferFrom(address from, address to, uint256 amount) returns (bool)
function balanceOf(address owner) returns (uint256)
function allowance(address owner, address spender) returns (uint256)
function totalSupply() returns (uint256)
function name() returns (string)
function symbol() returns (string)
function decimals() returns (uint8)
function ownerOf(uint256 tokenId) returns (address)
function safeTransferFrom(address from, address to, uint256 tokenId)
function safeTransferFrom(address from, address to, uint256 tokenId, bytes data)
function setApprovalForAll(address operator, bool approved)
function isApprovedForAll(address owner, address operator) returns (bool)
function safeTransferFrom(address from, address to, uint256 id, uint256 value, bytes data)
function safeBatchTransferFrom(address from, address to, uint256[] ids, uint256[] values, bytes data)
function supportsInterface(bytes4 interfaceId) returns (bool)
function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
function mint(address to, uint256 amount)
function burn(uint256 amount)
function deposit()
function withdraw(uint256 amount)
function owner() returns (address)
function transferOwnership(address newOwner)
function multicall(bytes[] data) returns (bytes[] results)
function execute(address target, uint256 value, bytes data)
function aggregate3((address target, bool allowFailure, bytes callData)[] calls) returns ((bool success, bytes returnData)[])
function swapExactTokensForTokens(uint256 amountIn, uint256 amountOutMin, address[] path, address to, uint256 deadline) returns (uint256[] amounts)
function setL1BlockValuesEcotone()
function setL1BlockValuesIsthmus()
function setL1BlockValuesJovian()
function initiateWithdrawal(address target, uint256 gasLimit, bytes data)
event Transfer(address indexed from, address indexed to, uint256 amount)
event Approval(address indexed owner, address indexed spender, uint256 amount)
event ApprovalForAll(address indexed owner, address indexed operator, bool approved)
event TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value)
event TransferBatch(address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] values)
event Deposit(address indexed to, uint256 amount)
event Withdrawal(address indexed from, uint256 amount)
event OwnershipTransferred(address indexed previousOwner, address indexed newOwner)
event RoleGranted(bytes32 indexed role, address indexed account, address indexed sender)
event RoleRevoked(bytes32 indexed role, address indexed account, address indexed sender)
event Upgraded(address indexed implementation)
event Initialized(uint64 version)
event Paused(address account)
event Unpaused(address account)
event Sync(uint112 reserve0, uint112 reserve1)
event MessagePassed(uint256 indexed nonce, address indexed sender, address indexed target, uint256 value, uint256 gasLimit, bytes data, bytes32 withdrawalHash)
error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)
error ERC20InvalidSender(address sender)
error ERC20InvalidReceiver(address receiver)
error ERC20InsufficientAllowance(address spender, uint256 allowance, uint256 needed)
error ERC20InvalidApprover(address approver)
error ERC20InvalidSpender(address spender)
error ERC721InvalidOwner(address owner)
error ERC721NonexistentToken(uint256 tokenId)
error ERC721IncorrectOwner(address sender, uint256 tokenId, address owner)
error ERC721InvalidSender(address sender)
error ERC721InvalidReceiver(address receiver)
error ERC721InsufficientApproval(address operator, uint256 tokenId)
error ERC721InvalidApprover(address approver)
error ERC721InvalidOperator(address operator)
error ERC1155InsufficientBalance(address sender, uint256 balance, uint256 needed, uint256 tokenId)
error ERC1155InvalidSender(address sender)
error ERC1155InvalidReceiver(address receiver)
error ERC1155MissingApprovalForAll(address operator, address owner)
error ERC1155InvalidApprover(address approver)
error ERC1155InvalidOperator(address operator)
error ERC1155InvalidArrayLength(uint256 idsLength, uint256 valuesLength)
error OwnableUnauthorizedAccount(address account)
error OwnableInvalidOwner(address owner)
error AccessControlUnauthorizedAccount(address account, bytes32 neededRole)
error ReentrancyGuardReentrantCall()
error InvalidInitialization()
error NotInitializing()
error EnforcedPause()
error SafeERC20FailedOperation(address token)
error AddressEmptyCode(address target)
error FailedCall()
error NotDepositor()
`.trim().split("\n");

/** Signatures by kind and selector, or topic of an event. */
function indexed(lines) {
  const found = { function: new Map(), event: new Map(), error: new Map() };
  for (const line of lines) {
    try {
      const parsed = parseSignature(line), hash = `0x${keccak(canonical(parsed))}`, [kind] = line.split(" ", 1);
      found[kind].set(kind === "event" ? hash : hash.slice(0, 10), parsed);
    } catch {
      // A line that somebody pasted.
    }
  }
  return found;
}

const common = indexed(COMMON);
const pasted = new Map(); // the index of the last looked up texts

function lookup(kind, selector, address) {
  for (const lines of [signaturesOf(address), allSignatures()]) {
    if (!lines.length) continue;
    const key = lines.join("\n");
    if (!pasted.has(key)) {
      if (pasted.size > 20) pasted.clear();
      pasted.set(key, indexed(lines));
    }
    const found = pasted.get(key)[kind].get(selector);
    if (found) return found;
  }
  return common[kind].get(selector) ?? null;
}

// https://docs.soliditylang.org/en/latest/control-structures.html#panic-via-assert-and-error-via-require
const PANICS = {
  0x00: "generic panic", 0x01: "assert(false)", 0x11: "arithmetic underflow or overflow",
  0x12: "division or modulo by zero", 0x21: "enum overflow", 0x22: "invalid encoded storage byte array accessed",
  0x31: "out-of-bounds array access; popping on an empty array", 0x32: "out-of-bounds access of an array or bytesN",
  0x41: "out of memory", 0x51: "uninitialized function",
};

export const SIGNATURES = [
  "balanceOf(address) returns (uint256)", "totalSupply() returns (uint256)", "name() returns (string)",
  "symbol() returns (string)", "decimals() returns (uint8)", "allowance(address,address) returns (uint256)",
  "ownerOf(uint256) returns (address)", "transfer(address,uint256) returns (bool)",
  "approve(address,uint256) returns (bool)", "getBlockNumber() returns (uint256)",
];

/** The reason of a revert as a text, from the returned data of a contract. */
export function revertReason(data, address) {
  if (!data || data === "0x") return "without a reason";
  try {
    if (data.startsWith("0x08c379a0")) return decode(parseSignature("Error(string)").inputs, "0x" + data.slice(10))[0];
    if (data.startsWith("0x4e487b71")) {
      const [code] = decode(parseSignature("Panic(uint256)").inputs, "0x" + data.slice(10));
      return `panic 0x${code.toString(16).padStart(2, "0")}: ${PANICS[Number(code)] ?? "unknown"}`;
    }
    const known = lookup("error", data.slice(0, 10), address);
    if (known) {
      const values = named(known.inputs, decode(known.inputs, "0x" + data.slice(10)));
      return `${known.name}(${values.map(([name, value]) => `${name}: ${value}`).join(", ")})`;
    }
  } catch {
    // The data does not decode.
  }
  return data.length >= 10 ? `error ${data.slice(0, 10)} with ${(data.length - 10) / 2} bytes` : `data ${data}`;
}

/** Name and arguments of a call with known data, or null. */
export function knownCall(data, address) {
  const parsed = data?.length >= 10 ? lookup("function", data.slice(0, 10), address) : null;
  if (!parsed) return null;
  try {
    return { name: parsed.name, arguments: named(parsed.inputs, decode(parsed.inputs, "0x" + data.slice(10))) };
  } catch {
    return null;
  }
}

/** Name and arguments of a log with a known topic, or null. */
export function knownEvent({ topics, data, address }) {
  const parsed = topics.length ? lookup("event", topics[0], address) : null;
  if (!parsed) return null;
  try {
    const { name, inputs } = parsed, marked = inputs.filter((each) => each.indexed);
    // Tokens with numbers index the last argument too.
    const inTopics = marked.length === topics.length - 1 ? marked : inputs.slice(0, topics.length - 1);
    if (inTopics.length !== topics.length - 1) return null;
    const rest = inputs.filter((each) => !inTopics.includes(each)), values = new Map();
    inTopics.forEach((type, at) => values.set(type, inTopic(type, topics[at + 1])));
    decode(rest, data).forEach((value, at) => values.set(rest[at], value));
    return { name, arguments: inputs.map((type) => (values.get(type) === null ? [type.name || type.canonical, "only its hash is known"] : named([type], [values.get(type)])[0])) };
  } catch {
    return null;
  }
}

/** A topic has values of one word, and only hashes of others. */
const inTopic = (type, topic) => (["bytes", "string", "array", "tuple"].includes(type.kind) ? null : decode([type], topic)[0]);

/** [name or type, value as text] */
export const named = (types, values) =>
  types.map((type, at) => [type.name || type.canonical, `${written(type, values[at])} ${scaled(type, values[at])}`.trim()]);

/** A decoded value as text. */
export function written(type, value) {
  switch (type.kind) {
    case "array": return `[${value.map((each) => written(type.of, each)).join(", ")}]`;
    case "tuple": return `(${value.map((each, at) => written(type.parts[at], each)).join(", ")})`;
    case "string": return JSON.stringify(value);
    case "address": return addressText(value);
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
