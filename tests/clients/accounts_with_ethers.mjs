// ethers with the accounts of the node: sends and signs through them, and verifies the result.
//
//     node accounts_with_ethers.mjs URL POSITION
//
// The scenarios are those of accounts_with_viem.mjs.

import { JsonRpcProvider, verifyMessage, verifyTypedData } from 'ethers'
import { tell } from './telling.mjs'

const [url, position] = process.argv.slice(2)
const STRANGER = '0x00000000000000000000000000000000000A11cE'
const NOBODY = '0x0000000000000000000000000000000000000B0b'
const DOMAIN = { name: 'Post', chainId: 31337 }
const TYPES = {
  Person: [{ name: 'wallet', type: 'address' }, { name: 'numbers', type: 'uint256[]' }],
  Mail: [{ name: 'to', type: 'Person[2]' }, { name: 'contents', type: 'string' }],
}
const MAIL = {
  to: [{ wallet: NOBODY, numbers: [] }, { wallet: STRANGER, numbers: [1n, 2n ** 255n] }],
  contents: 'Grüße',
}

const provider = new JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 20 })
const signer = await provider.getSigner(Number(position))
const statusOf = async (sent) => ((await sent.wait()).status === 1 ? 'success' : 'reverted')

const scenarios = {
  sends: async () => statusOf(await signer.sendTransaction({ to: NOBODY, value: 1n })),
  atOnce: async () => {
    const one = () => signer.sendTransaction({ to: NOBODY, value: 1n })
    const sent = await Promise.all(Array.from({ length: 20 }, one))
    const statuses = new Set(await Promise.all(sent.map(statusOf)))
    return statuses.size === 1 && new Set(sent.map(({ hash }) => hash)).size
  },
  message: async () =>
    verifyMessage('Hello', await signer.signMessage('Hello')) === signer.address,
  typedData: async () => {
    const signature = await signer.signTypedData(DOMAIN, TYPES, MAIL)
    return verifyTypedData(DOMAIN, TYPES, MAIL, signature) === signer.address
  },
  impersonates: async () => {
    const send = () => provider.send('eth_sendTransaction', [{ from: STRANGER, to: NOBODY }])
    await provider.send('hardhat_impersonateAccount', [STRANGER])
    const { status } = await provider.waitForTransaction(await send())
    await provider.send('hardhat_stopImpersonatingAccount', [STRANGER])
    const refused = await send().catch((error) => error.error.message)
    return [status === 1 ? 'success' : 'reverted', refused]
  },
}
await tell(scenarios, [])
process.exit(0)
