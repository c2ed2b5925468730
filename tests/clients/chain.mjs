import { defineChain } from 'viem'
import { chainConfig } from 'viem/op-stack'

/** The main network of `foreblock dev`; the test network is 31338 on port 9545. */
export const foreblock = defineChain({
  ...chainConfig, // fields, deposits and predeploys of OP chains
  id: 31337,
  name: 'foreblock',
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: ['http://127.0.0.1:8545'] } },
  contracts: {
    ...chainConfig.contracts,
    multicall3: { address: '0xcA11bde05977b3631167028862bE2a173976CA11' },
  },
  experimental_preconfirmationTime: 200, // viem reads at `pending`, and polls at this interval
})
