// Steps of a flow in the format of `flows.py`, and the flow's environment.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'

export { assert }
export const { RPC_URL, WS_URL, TARGET, OUT } = process.env
export const CHAIN_ID = Number(process.env.CHAIN_ID)
export const vault = JSON.parse(readFileSync(new URL('contracts/Vault.json', import.meta.url), 'utf8'))

// The first accounts of the default mnemonic of dev chains.
export const KEYS = [
  '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
  '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
]
export const ACCOUNTS = [
  '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
  '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
]

const LONGEST = 30 // seconds of a step
let failed = 0

const inTime = (running, seconds) => {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${seconds} s`)), seconds * 1000)
  })
  return Promise.race([running, late]).finally(() => clearTimeout(timer))
}

/** The first lines of an error's text, as one line. */
export const inOneLine = (error) => {
  const text = `${error?.shortMessage ?? ''} ${error?.details ?? ''} ${error?.message ?? error}`
  return text.replaceAll(/\s+/g, ' ').trim().slice(0, 400)
}

/** Run one step; return its result, or undefined if it failed. */
export const step = async (name, run, seconds = LONGEST) => {
  try {
    const found = await inTime(run(), seconds)
    console.log(`ok ${name}`)
    return found
  } catch (error) {
    failed++
    console.log(`failed ${name}: ${inOneLine(error)}`)
    return undefined
  }
}

/** End the flow, including open watchers and sockets. */
export const end = () => process.exit(failed ? 1 : 0)

/** The result of the condition once it is truthy. */
export const until = async (condition) => {
  for (;;) {
    const found = await condition()
    if (found) return found
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** A raw request. */
export const rpc = async (method, ...params) => {
  const response = await fetch(RPC_URL, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const { result, error } = await response.json()
  if (error) throw new Error(`${error.code} ${error.message}`)
  return result
}
