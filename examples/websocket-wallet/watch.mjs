// Watches an account over one WebSocket: each payment as it is pre-confirmed, and as it is sealed.
//
//     pre-confirmed: 1 ether
//     sealed: 1 ether
import { createPublicClient, createWalletClient, formatEther, parseEther, webSocket } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { foundry } from 'viem/chains'

const url = process.env.WS_URL ?? 'ws://127.0.0.1:8545'
const options = { chain: { ...foundry, experimental_preconfirmationTime: 200 }, transport: webSocket(url) }
const client = createPublicClient(options)
const me = privateKeyToAccount(generatePrivateKey()).address
const provisional = new Map() // payments by hash, until their block is sealed

await client.transport.subscribe({
  params: ['newFlashblockTransactions', true],
  onData({ result: { hash, to, value } }) {
    if (to?.toLowerCase() !== me.toLowerCase()) return
    provisional.set(hash, formatEther(BigInt(value)))
    console.log(`pre-confirmed: ${provisional.get(hash)} ether`)
  },
})
await client.transport.subscribe({
  params: ['newHeads'],
  async onData({ result: head }) {
    const { transactions } = await client.getBlock({ blockHash: head.hash })
    for (const hash of transactions.filter((each) => provisional.has(each))) {
      console.log(`sealed: ${provisional.get(hash)} ether`)
      provisional.delete(hash)
      process.exit() // a wallet would continue
    }
  },
})

const payer = privateKeyToAccount('0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a')
await createWalletClient({ ...options, account: payer }).sendTransaction({ to: me, value: parseEther('1') })
