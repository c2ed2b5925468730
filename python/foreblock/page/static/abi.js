// The contract ABI of Solidity: parse signatures, encode arguments from text, decode values.
// No hashing: the service does that (`web3_sha3`).

const WORD = 64; // hex digits
const MOST_ITEMS = 10_000;

// Types.

/** The types of a list such as `address to, (uint256,bool)[] pairs`. */
export function parseTypes(text) {
  return split(text).map(parseType);
}

/** `balanceOf(address owner) view returns (uint256)` */
export function parseSignature(text) {
  const open = text.indexOf("(");
  const name = text.slice(0, open).replace(/^\s*(function|event|error)\s+/, "").trim();
  if (open < 0 || !/^[A-Za-z_$][\w$]*$/.test(name)) throw new Error(`not a signature: ${text}`);
  const end = closing(text, open);
  const after = text.slice(end + 1);
  const returned = /\breturns?\s*\(/.exec(after) ?? /^\s*(?:->|:)\s*\(/.exec(after) ?? /^\s*\(/.exec(after);
  let outputs = [];
  if (returned) {
    const from = returned.index + returned[0].length - 1;
    outputs = parseTypes(after.slice(from + 1, closing(after, from)));
  }
  return { name, inputs: parseTypes(text.slice(open + 1, end)), outputs };
}

export const canonical = ({ name, inputs }) => `${name}(${inputs.map((each) => each.canonical).join(",")})`;

function parseType(text) {
  let rest = text.trim().replace(/^tuple\s*\(/, "(");
  let type;
  if (rest.startsWith("(")) {
    const end = closing(rest, 0), parts = parseTypes(rest.slice(1, end));
    type = { kind: "tuple", parts, canonical: `(${parts.map((part) => part.canonical).join(",")})` };
    rest = rest.slice(end + 1);
  } else {
    const word = /^[A-Za-z]+\d*/.exec(rest)?.[0] ?? "";
    type = elementary(word, text);
    rest = rest.slice(word.length);
  }
  for (let found; (found = /^\s*\[(\d*)\]/.exec(rest)); rest = rest.slice(found[0].length)) {
    const length = found[1] === "" ? null : Number(found[1]);
    type = { kind: "array", of: type, length, canonical: `${type.canonical}[${found[1]}]` };
  }
  const words = rest.trim().split(/\s+/).filter((word) => !/^(memory|calldata|storage|payable|)$/.test(word));
  const indexed = words[0] === "indexed";
  return { ...type, indexed, name: words[indexed ? 1 : 0] ?? "" };
}

function elementary(word, text) {
  if (word === "uint" || word === "int") word += "256";
  const [, base, digits] = /^([a-z]+)(\d*)$/.exec(word) ?? [];
  const size = Number(digits);
  if ((base === "uint" || base === "int") && size >= 8 && size <= 256 && size % 8 === 0) return { kind: base, bits: size, canonical: word };
  if (base === "bytes" && digits !== "" && size >= 1 && size <= 32) return { kind: "fixed", size, canonical: word };
  if (digits === "" && ["address", "bool", "bytes", "string"].includes(base)) return { kind: base, canonical: word };
  throw new Error(`not a type: ${text.trim()}`);
}

/** The parts between commas outside of brackets and quotes. */
export function split(text) {
  const parts = [];
  let depth = 0, quote = "", part = "";
  for (const each of text) {
    if (quote) quote = each === quote ? "" : quote;
    else if (each === '"' || each === "'") quote = each;
    else if ("([{".includes(each)) depth += 1;
    else if (")]}".includes(each)) depth -= 1;
    if (each === "," && depth === 0 && !quote) {
      parts.push(part.trim());
      part = "";
    } else part += each;
  }
  return part.trim() || parts.length ? [...parts, part.trim()] : [];
}

function closing(text, open) {
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    if (text[at] === "(") depth += 1;
    if (text[at] === ")" && --depth === 0) return at;
  }
  throw new Error(`a bracket is open: ${text}`);
}

const isDynamic = (type) =>
  type.kind === "bytes" || type.kind === "string" ||
  (type.kind === "array" && (type.length === null || isDynamic(type.of))) ||
  (type.kind === "tuple" && type.parts.some(isDynamic));

// Values to bytes.

/** Hex digits, without 0x, of arguments as texts. */
export function encode(types, texts) {
  if (types.length !== texts.length) throw new Error(`${types.length} arguments are needed, ${texts.length} are given`);
  const heads = [], tails = [];
  types.forEach((type, at) => {
    const value = encodeOne(type, texts[at]);
    heads.push(isDynamic(type) ? null : value);
    tails.push(isDynamic(type) ? value : "");
  });
  let offset = heads.reduce((sum, head) => sum + (head === null ? WORD : head.length), 0) / 2;
  const placed = heads.map((head, at) => {
    if (head !== null) return head;
    const place = word(BigInt(offset));
    offset += tails[at].length / 2;
    return place;
  });
  return placed.join("") + tails.join("");
}

function encodeOne(type, text) {
  switch (type.kind) {
    case "uint": case "int": return encodeNumber(type, text);
    case "bool": return word(truth(text) ? 1n : 0n);
    case "address": return digits(text, 20, type).padStart(WORD, "0");
    case "fixed": return digits(text, type.size, type).padEnd(WORD, "0");
    case "bytes": return sized(digits(text, null, type));
    case "string": return sized(utf8(unquoted(text)));
    case "tuple": return encode(type.parts, split(inner(text, type)));
    default: return encodeArray(type, split(inner(text, type)));
  }
}

function encodeArray(type, texts) {
  if (type.length !== null && texts.length !== type.length) throw new Error(`${type.canonical} needs ${type.length} items`);
  const items = encode(texts.map(() => type.of), texts);
  return type.length === null ? word(BigInt(texts.length)) + items : items;
}

function encodeNumber(type, text) {
  const plain = unquoted(text).replace(/[_,\s]/g, ""), power = /^(-?\d+)e(\d{1,2})$/.exec(plain);
  let value;
  try {
    value = power ? BigInt(power[1]) * 10n ** BigInt(power[2]) : plain.startsWith("-") ? -BigInt(plain.slice(1)) : BigInt(plain || "x");
  } catch {
    throw new Error(`not a number: ${text}`);
  }
  const bits = BigInt(type.bits), signed = type.kind === "int";
  const [low, high] = signed ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n] : [0n, (1n << bits) - 1n];
  if (value < low || value > high) throw new Error(`${text} is outside ${type.canonical}`);
  return word(BigInt.asUintN(256, value));
}

const word = (value) => value.toString(16).padStart(WORD, "0");
const sized = (data) => word(BigInt(data.length / 2)) + data.padEnd(Math.ceil(data.length / WORD) * WORD, "0");
const utf8 = (text) => [...new TextEncoder().encode(text)].map((each) => each.toString(16).padStart(2, "0")).join("");
const unquoted = (text) => text.trim().replace(/^(["'])([^]*)\1$/, "$2");

function truth(text) {
  const plain = unquoted(text).toLowerCase();
  if (!["true", "false", "1", "0"].includes(plain)) throw new Error(`not a truth value: ${text}`);
  return plain === "true" || plain === "1";
}

function digits(text, size, type) {
  const found = /^0x((?:[0-9a-f]{2})*)$/i.exec(unquoted(text));
  if (!found || (size !== null && found[1].length !== 2 * size)) throw new Error(`not ${type.canonical}: ${text}`);
  return found[1].toLowerCase();
}

function inner(text, type) {
  const found = /^[[({]([^]*)[\])}]$/.exec(text.trim());
  if (!found) throw new Error(`${type.canonical} is written in brackets: ${text}`);
  return found[1];
}

// Bytes to values.

// Lists may share their items, so little data can have very many.
let left = 0;

/** Values of data with 0x: bigints, booleans, texts, lists. Throws if the data is too short. */
export function decode(types, data) {
  left = MOST_ITEMS;
  return decodeAt(types, data.slice(2), 0);
}

function decodeAt(types, data, base) {
  let head = base;
  left -= types.length;
  if (left < 0) throw new Error("too many items");
  return types.map((type) => {
    const at = isDynamic(type) ? base + 2 * position(data, head) : head;
    head += isDynamic(type) ? WORD : WORD * words(type);
    return decodeOne(type, data, at);
  });
}

const words = (type) =>
  type.kind === "array" ? type.length * words(type.of) : type.kind === "tuple" ? type.parts.reduce((sum, part) => sum + words(part), 0) : 1;

function decodeOne(type, data, at) {
  switch (type.kind) {
    case "uint": return BigInt.asUintN(type.bits, BigInt("0x" + take(data, at, WORD)));
    case "int": return BigInt.asIntN(type.bits, BigInt("0x" + take(data, at, WORD)));
    case "bool": return BigInt("0x" + take(data, at, WORD)) !== 0n;
    case "address": return "0x" + take(data, at + 24, 40);
    case "fixed": return "0x" + take(data, at, 2 * type.size);
    case "bytes": return "0x" + take(data, at + WORD, 2 * position(data, at));
    case "string": return text(take(data, at + WORD, 2 * position(data, at)));
    case "tuple": return decodeAt(type.parts, data, at);
    default: {
      const length = type.length ?? position(data, at), from = type.length === null ? at + WORD : at;
      if (length > left) throw new Error("too many items");
      return decodeAt(Array(length).fill(type.of), data, from);
    }
  }
}

function take(data, at, length) {
  if (at + length > data.length) throw new Error("the data is too short");
  return data.slice(at, at + length);
}

function position(data, at) {
  const value = BigInt("0x" + take(data, at, WORD));
  if (value * 2n > BigInt(data.length)) throw new Error("the data is too short");
  return Number(value);
}

function text(hex) {
  const bytes = new Uint8Array((hex.match(/../g) ?? []).map((pair) => parseInt(pair, 16)));
  return new TextDecoder().decode(bytes);
}
