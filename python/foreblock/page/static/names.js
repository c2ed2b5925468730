// Names of known addresses, and addresses with the checksum of EIP-55.

import { keccak } from "./keccak.js";

const NAMES = {
  "0x0000000000000000000000000000000000000000": "zero address",
  "0x000f3df6d732807ef1319fb7b8bb8522d0beac02": "beacon roots",
  "0x0000f90827f1c53a10cb7a02335b175320002935": "block hashes",
  "0x00000961ef480eb55e80d19ad83579a64c007002": "withdrawal requests",
  "0x0000bbddc7ce488642fb579f8b00f3a590007251": "consolidation requests",
  "0x4200000000000000000000000000000000000006": "WETH",
  "0x4200000000000000000000000000000000000007": "L2CrossDomainMessenger",
  "0x420000000000000000000000000000000000000f": "GasPriceOracle",
  "0x4200000000000000000000000000000000000010": "L2StandardBridge",
  "0x4200000000000000000000000000000000000011": "SequencerFeeVault",
  "0x4200000000000000000000000000000000000015": "L1Block",
  "0x4200000000000000000000000000000000000016": "L2ToL1MessagePasser",
  "0x4200000000000000000000000000000000000018": "ProxyAdmin",
  "0x4200000000000000000000000000000000000019": "BaseFeeVault",
  "0x420000000000000000000000000000000000001a": "L1FeeVault",
  "0x420000000000000000000000000000000000001b": "OperatorFeeVault",
  "0x4e59b44847b379578588920ca78fbf26c0b4956c": "deployment proxy",
  "0xca11bde05977b3631167028862be2a173976ca11": "Multicall3",
  "0x000000000022d473030f116ddee9f6b43ac78ba3": "Permit2",
  "0x0000000071727de22e5e9d8baf0edac6f37da032": "EntryPoint 0.7",
  "0x5ff137d4b0fdcd49dca30c7cf57e578a026d2789": "EntryPoint 0.6",
  "0xdeaddeaddeaddeaddeaddeaddeaddeaddead0001": "L1 attributes depositor",
};
// Only on dev chains: elsewhere anybody may be there.
const DEV_NAMES = { "0x7e57000000000000000000000000000000000020": "Test token" };

/** The name of an address on a network, or an empty text. */
export function nameOf(network, address) {
  const wanted = address.toLowerCase(), at = network.accounts.indexOf(wanted);
  if (at >= 0) return `account ${at}`;
  return NAMES[wanted] ?? (network.accounts.length ? DEV_NAMES[wanted] : undefined) ?? "";
}

const LIMIT = 500;
const known = new Map(); // a hash takes some 50 µs, and lists repeat their addresses

// https://eips.ethereum.org/EIPS/eip-55
/** An address with its checksum. */
export function addressText(address) {
  const digits = address.slice(2).toLowerCase();
  if (digits.length !== 40) return address;
  if (!known.has(digits)) {
    const hash = keccak(digits);
    if (known.size >= LIMIT) known.clear();
    known.set(digits, "0x" + [...digits].map((each, at) => (parseInt(hash[at], 16) >= 8 ? each.toUpperCase() : each)).join(""));
  }
  return known.get(digits);
}

/** The name of an address, or its ends. */
export function shortAddress(network, address) {
  const text = addressText(address);
  return nameOf(network, address) || `${text.slice(0, 8)}…${text.slice(-4)}`;
}
