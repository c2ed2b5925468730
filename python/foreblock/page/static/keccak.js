// Keccak-256 in 32-bit halves, for selectors, topics and checksums of addresses.
// https://keccak.team/keccak_specs_summary.html

const ROTATIONS = [], LANES = []; // of the steps rho and pi
for (let x = 1, y = 0, t = 0; t < 24; t += 1) {
  const to = y + 5 * ((2 * x + 3 * y) % 5);
  LANES.push(to);
  ROTATIONS.push((((t + 1) * (t + 2)) / 2) % 64);
  [x, y] = [y, (2 * x + 3 * y) % 5];
}

/** Round constants from the linear feedback shift register of the specification. */
const CONSTANTS = [];
for (let round = 0, register = 1; round < 24; round += 1) {
  let low = 0, high = 0;
  for (let bit = 0; bit < 7; bit += 1) {
    const place = (1 << bit) - 1;
    if (register & 1) {
      if (place < 32) low |= 1 << place;
      else high |= 1 << (place - 32);
    }
    register = register & 0x80 ? ((register << 1) ^ 0x171) & 0xff : register << 1;
  }
  CONSTANTS.push([low, high]);
}

const RATE = 136; // bytes

function permute(low, high) {
  const sumLow = new Int32Array(5), sumHigh = new Int32Array(5);
  for (const [constantLow, constantHigh] of CONSTANTS) {
    for (let x = 0; x < 5; x += 1) {
      sumLow[x] = low[x] ^ low[x + 5] ^ low[x + 10] ^ low[x + 15] ^ low[x + 20];
      sumHigh[x] = high[x] ^ high[x + 5] ^ high[x + 10] ^ high[x + 15] ^ high[x + 20];
    }
    for (let x = 0; x < 5; x += 1) {
      const before = (x + 4) % 5, after = (x + 1) % 5;
      const addLow = sumLow[before] ^ ((sumLow[after] << 1) | (sumHigh[after] >>> 31));
      const addHigh = sumHigh[before] ^ ((sumHigh[after] << 1) | (sumLow[after] >>> 31));
      for (let at = x; at < 25; at += 5) {
        low[at] ^= addLow;
        high[at] ^= addHigh;
      }
    }
    let carryLow = low[1], carryHigh = high[1];
    for (let t = 0; t < 24; t += 1) {
      const to = LANES[t], by = ROTATIONS[t] % 32, [nextLow, nextHigh] = [low[to], high[to]];
      const [first, second] = ROTATIONS[t] < 32 ? [carryLow, carryHigh] : [carryHigh, carryLow];
      low[to] = by ? (first << by) | (second >>> (32 - by)) : first;
      high[to] = by ? (second << by) | (first >>> (32 - by)) : second;
      [carryLow, carryHigh] = [nextLow, nextHigh];
    }
    for (let y = 0; y < 25; y += 5) {
      for (const half of [low, high]) {
        const row = half.slice(y, y + 5);
        for (let x = 0; x < 5; x += 1) half[y + x] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]);
      }
    }
    low[0] ^= constantLow;
    high[0] ^= constantHigh;
  }
}

/** The hash of a text in UTF-8, as hex digits without 0x. */
export function keccak(text) {
  const given = new TextEncoder().encode(text), length = Math.ceil((given.length + 1) / RATE) * RATE;
  const padded = new Uint8Array(length), view = new DataView(padded.buffer);
  padded.set(given);
  padded[given.length] ^= 0x01;
  padded[length - 1] ^= 0x80;
  const low = new Int32Array(25), high = new Int32Array(25);
  for (let from = 0; from < length; from += RATE) {
    for (let lane = 0; lane < RATE / 8; lane += 1) {
      low[lane] ^= view.getInt32(from + 8 * lane, true);
      high[lane] ^= view.getInt32(from + 8 * lane + 4, true);
    }
    permute(low, high);
  }
  const out = new DataView(new ArrayBuffer(32));
  for (let lane = 0; lane < 4; lane += 1) {
    out.setInt32(8 * lane, low[lane], true);
    out.setInt32(8 * lane + 4, high[lane], true);
  }
  return [...new Uint8Array(out.buffer)].map((each) => each.toString(16).padStart(2, "0")).join("");
}
