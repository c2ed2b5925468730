// Values of JSON-RPC in readable form.

export const number = (hex) => (hex === null || hex === undefined ? null : Number(hex));
export const grouped = (value) => Number(value).toLocaleString("en-US");
export const hex = (value) => "0x" + BigInt(value).toString(16);

/** 0x12345678…cdef */
export function short(text, head = 10, tail = 4) {
  if (!text) return "";
  return text.length <= head + tail + 1 ? text : `${text.slice(0, head)}…${text.slice(-tail)}`;
}

/** 12.3 M, 4.5 k, 678 */
export function compact(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (Math.abs(value) >= size) return `${trim(value / size)} ${unit}`;
  }
  return trim(value);
}

/** At most three significant digits. */
export function trim(value) {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return String(Math.round(value));
  return size >= 10 ? value.toFixed(1) : size >= 0.01 ? value.toFixed(2) : size ? value.toPrecision(2) : "0";
}

/** Wei as a decimal number of a unit, with at most `most` decimals. */
export function decimal(wei, decimals = 18, most = decimals) {
  const value = BigInt(wei), sign = value < 0n ? "-" : "", size = value < 0n ? -value : value;
  const one = 10n ** BigInt(decimals);
  const whole = (size / one).toLocaleString("en-US");
  const rest = (size % one).toString().padStart(decimals, "0").slice(0, most).replace(/0+$/, "");
  const tiny = !rest && whole === "0" && size > 0n && most < decimals;
  if (tiny) return `${sign}<0.${"0".repeat(most - 1)}1`;
  return sign + whole + (rest ? `.${rest}` : "");
}

export const ether = (wei, most = 18) => `${decimal(wei, 18, most)} ETH`;
export const gwei = (wei) => `${trim(Number(wei) / 1e9)} gwei`;

/** An amount of wei in the unit that suits it: ETH, gwei or wei. */
export function amount(wei, most = 18) {
  const value = BigInt(wei), size = value < 0n ? -value : value;
  if (size === 0n || size >= 10n ** 14n) return ether(value, most);
  return size >= 10n ** 7n ? `${decimal(value, 9, 6)} gwei` : `${value} wei`;
}

/** A decimal number of ether as wei. Throws if it is not a number. */
export function wei(text) {
  const parts = /^\s*(\d*)(?:\.(\d{0,18}))?\s*$/.exec(text.replace(/[,_]/g, ""));
  if (!parts || !(parts[1] || parts[2])) throw new Error(`not an amount of ether: ${text}`);
  return BigInt(parts[1] || 0) * 10n ** 18n + BigInt((parts[2] || "").padEnd(18, "0"));
}

/** 0.2 s, 14 s, 3 min, 5 h, 2 d, 7 y */
export function duration(seconds) {
  if (seconds < 0) return "0 s";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 100) return `${Math.round(seconds)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  const days = seconds / 86400;
  return days < 1000 ? `${Math.round(days)} d` : `${Math.round(days / 365.25)} y`;
}

/** 2026-11-16 08:46:54 UTC */
export function clock(timestamp) {
  return new Date(Number(timestamp) * 1000).toISOString().replace("T", " ").replace(".000Z", " UTC");
}

/** 08:46:54.123, of milliseconds since 1970 */
export const wallClock = (at) => new Date(at).toTimeString().slice(0, 8) + `.${String(Math.floor(at % 1000)).padStart(3, "0")}`;

/** 1,048,576 bytes */
export const bytes = (data) => {
  const size = (data.length - 2) / 2;
  return `${grouped(size)} byte${size === 1 ? "" : "s"}`;
};

export const share = (part, all) => (all ? `${trim((100 * part) / all)} %` : "–");
export const plural = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
