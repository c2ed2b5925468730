// Random typed data with the digest of both viem and ethers, one JSON object per line.
//
//     node typed_data.mjs COUNT
//
// The first hundred are tests/methods/typed_data.jsonl.gz.

import { hashTypedData } from 'viem'
import { TypedDataEncoder } from 'ethers'

let seed = 12345
const random = () => { seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff; return seed / 0x7fffffff }
const below = (n) => Math.floor(random() * n)
const hex = (bytes) => '0x' + Array.from({ length: bytes }, () => below(256).toString(16).padStart(2, '0')).join('')
const texts = ['', 'Hello', 'Grüße, 世界', 'a'.repeat(40), '\u{1F600}', 'quote " and \\']

const atoms = ['string', 'bytes', 'bool', 'address', 'bytes1', 'bytes4', 'bytes32', 'uint8', 'uint64', 'uint256', 'int8', 'int128', 'int256']
function atom(type) {
  if (type === 'string') return texts[below(texts.length)]
  if (type === 'bytes') return hex(below(50))
  if (type === 'bool') return random() < 0.5
  if (type === 'address') return hex(20)
  if (type.startsWith('bytes')) return hex(Number(type.slice(5)))
  const signed = type[0] === 'i'
  const bits = BigInt(type.replace(/\D/g, ''))
  const span = 1n << bits
  let n = BigInt(hex(32)) % span
  if (random() < 0.2) n = 0n
  if (signed) n -= span / 2n
  const form = below(3)
  if (form === 0 && n >= 0n) return '0x' + n.toString(16)
  if (form === 1 && n < 2n ** 53n && n > -(2n ** 53n)) return Number(n)
  return n.toString()
}
function value(type, types) {
  const array = /^(.*)\[(\d*)\]$/.exec(type)
  if (array) return Array.from({ length: array[2] ? Number(array[2]) : below(4) }, () => value(array[1], types))
  if (types[type]) return Object.fromEntries(types[type].map((each) => [each.name, value(each.type, types)]))
  return atom(type)
}
function made() {
  const names = ['Mail', 'Person', 'Asset', 'zed', 'Order_1'].slice(0, 1 + below(5))
  const types = {}
  names.forEach((name, i) => {
    const later = names.slice(i + 1)
    types[name] = Array.from({ length: 1 + below(4) }, (_, f) => {
      let type = later.length && random() < 0.5 ? later[below(later.length)] : atoms[below(atoms.length)]
      while (random() < 0.3) type += random() < 0.5 ? '[]' : `[${1 + below(3)}]`
      return { name: `f${f}`, type }
    })
  })
  // ethers requires every type to be used by the primary one
  const used = new Set(['Mail'])
  for (const name of names) if (used.has(name)) types[name].forEach((f) => { const b = f.type.split('[')[0]; if (types[b]) used.add(b) })
  for (const name of names) if (!used.has(name)) delete types[name]
  const domain = {}
  const fields = { name: 'string', version: 'string', chainId: 'uint256', verifyingContract: 'address', salt: 'bytes32' }
  for (const [name, type] of Object.entries(fields)) if (random() < 0.6) domain[name] = name === 'chainId' ? below(100000) : atom(type)
  const message = value('Mail', types)
  return { types, domain, primaryType: 'Mail', message, fields }
}
const numbers = (type, v, types) => {
  const array = /^(.*)\[(\d*)\]$/.exec(type)
  if (array) return v.map((each) => numbers(array[1], each, types))
  if (types[type]) return Object.fromEntries(types[type].map((each) => [each.name, numbers(each.type, v[each.name], types)]))
  return /^u?int/.test(type) ? BigInt(v) : v
}
for (let count = 0; count < Number(process.argv[2]);) {
  const { types, domain, primaryType, message, fields } = made()
  const exact = numbers('Mail', message, types)
  const domainType = Object.entries(fields).filter(([name]) => name in domain).map(([name, type]) => ({ name, type }))
  const a = hashTypedData({ types: { ...types, EIP712Domain: domainType }, domain, primaryType, message: exact })
  const b = TypedDataEncoder.hash(domain, types, exact)
  if (a !== b) throw new Error(JSON.stringify({ types, domain, message, a, b }))
  const shown = count % 2 ? { EIP712Domain: domainType, ...types } : types
  console.log(JSON.stringify({ data: { types: shown, domain, primaryType, message }, digest: a }))
  count++
}
