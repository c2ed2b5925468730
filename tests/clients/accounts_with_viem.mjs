// viem with the accounts of the node: sends and signs through them, and verifies the result.
//
//     node accounts_with_viem.mjs URL POSITION
//
// POSITION is that of an account without other users.

import {
  createTestClient, http, publicActions, verifyMessage, verifyTypedData, walletActions,
} from 'viem'
import { foundry } from 'viem/chains'
import { tell } from './telling.mjs'

const [url, position] = process.argv.slice(2)
const STRANGER = '0x00000000000000000000000000000000000a11ce'
const NOBODY = '0x0000000000000000000000000000000000000B0b'
const TYPED = {
  domain: { name: 'Post', chainId: 31337 },
  types: {
    Person: [{ name: 'wallet', type: 'address' }, { name: 'numbers', type: 'uint256[]' }],
    Mail: [{ name: 'to', type: 'Person[2]' }, { name: 'contents', type: 'string' }],
  },
  primaryType: 'Mail',
  message: {
    to: [{ wallet: NOBODY, numbers: [] }, { wallet: STRANGER, numbers: [1n, 2n ** 255n] }],
    contents: 'Grüße',
  },
}

const client = createTestClient({
  chain: foundry, mode: 'anvil', pollingInterval: 20, transport: http(url),
}).extend(publicActions).extend(walletActions)
const accounts = await client.getAddresses()
const account = accounts[Number(position)]
const statusOf = async (hash) => (await client.waitForTransactionReceipt({ hash })).status

const scenarios = {
  sends: async () => statusOf(await client.sendTransaction({ account, to: NOBODY, value: 1n })),
  atOnce: async () => {
    const one = () => client.sendTransaction({ account, to: NOBODY, value: 1n })
    const hashes = await Promise.all(Array.from({ length: 20 }, one))
    return new Set(await Promise.all(hashes.map(statusOf))).size === 1 && new Set(hashes).size
  },
  message: async () => {
    const signature = await client.signMessage({ account, message: 'Hello' })
    return verifyMessage({ address: account, message: 'Hello', signature })
  },
  typedData: async () => {
    const signature = await client.signTypedData({ account, ...TYPED })
    return verifyTypedData({ address: account, signature, ...TYPED })
  },
  impersonates: async () => {
    const send = () => client.sendTransaction({ account: STRANGER, to: NOBODY })
    await client.impersonateAccount({ address: STRANGER })
    const status = await statusOf(await send())
    await client.stopImpersonatingAccount({ address: STRANGER })
    return [status, await send().catch((error) => error.details)]
  },
}
await tell(scenarios, [])
