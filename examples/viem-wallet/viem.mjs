// What the page needs of viem, bundled once by `npm install`.
export { createPublicClient, createWalletClient, defineChain, formatEther, http, parseEther } from 'viem'
export { privateKeyToAccount } from 'viem/accounts'
export { chainConfig } from 'viem/op-stack'
