import { createPublicClient, createWalletClient, defineChain, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { chainConfig } from 'viem/op-stack'

/** A wallet that shows payments before their block. */
export const makeWallet = (url, key) => {
  const chain = defineChain({
    ...chainConfig,
    id: 31337,
    name: 'foreblock',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [url] } },
    experimental_preconfirmationTime: 200, // viem reads at `pending`, and polls at this interval
  })
  const transport = http(url, { batch: true })
  const client = createPublicClient({ chain, transport })
  const wallet = createWalletClient({ chain, transport, account: privateKeyToAccount(key) })

  return {
    /** Sealed and pre-confirmed balance; one batch, so both are of one snapshot. */
    async balance(address) {
      const [sealed, pending] = await Promise.all(
        ['latest', 'pending'].map((blockTag) => client.getBalance({ address, blockTag })),
      )
      return { sealed, provisional: pending - sealed }
    },

    /** The hash, before any block or flashblock has the transaction. */
    send: (to, value) => wallet.sendTransaction({ to, value }),

    /** 'unknown', 'pre-confirmed' or 'sealed'. */
    async state(hash) {
      const [receipt, latest] = await Promise.all([
        client.request({ method: 'eth_getTransactionReceipt', params: [hash] }),
        client.getBlock({ blockTag: 'latest' }),
      ])
      if (!receipt) return 'unknown'
      return BigInt(receipt.blockNumber) > latest.number ? 'pre-confirmed' : 'sealed'
    },

    request: client.request,
  }
}
