// Clients as in viem's guide to testing with anvil: its own `foundry` chain, unchanged.

import { createPublicClient, createWalletClient, http, webSocket } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { foundry } from 'viem/chains'
import { KEYS, RPC_URL, WS_URL, vault } from '../steps.mjs'

export const chain = foundry
export const transport = http(RPC_URL)
export const account = privateKeyToAccount(KEYS[0])
export const client = createPublicClient({ chain, transport, pollingInterval: 50 })
export const wallet = createWalletClient({ chain, transport, account })
/** A client with the accounts of the node. */
export const unlocked = createWalletClient({ chain, transport })
export const socketClient = () => createPublicClient({ chain, transport: webSocket(WS_URL) })
export const { abi } = vault

export const receiptOf = (hash) => client.waitForTransactionReceipt({ hash })

/** Deploys a vault. */
export const deploy = async (args = [0n], value = 0n, from = wallet) => {
  const hash = await from.deployContract({ abi, bytecode: vault.initCode, args, value })
  const { contractAddress: address, status } = await receiptOf(hash)
  if (status !== 'success') throw new Error('the deployment failed')
  return { address, abi }
}
