// Sends an ether with ethers, and shows it a flashblock later. `tx.wait()` would take 4.2 s.
//
//     receipt with status 0x1
//     at pending: 1.0
//     at latest: 1.0
import { JsonRpcProvider, Network, Wallet, formatEther, parseEther } from 'ethers'

const network = Network.from(31337)
const provider = new JsonRpcProvider(process.env.RPC_URL ?? 'http://127.0.0.1:8545', network, {
  staticNetwork: network, // does not ask for the chain id again and again
  cacheTimeout: -1, // does not give an answer twice: 250 ms is more than a flashblock
  pollingInterval: 200,
})
const wallet = new Wallet(
  '0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a',
  provider,
)

/** Send a transaction; the receipt is that of its pre-confirmation. */
const sendSync = async (transaction) => {
  const signed = await wallet.signTransaction(await wallet.populateTransaction(transaction))
  return provider.send('eth_sendRawTransactionSync', [signed])
}

const to = Wallet.createRandom().address
const receipt = await sendSync({ to, value: parseEther('1') })
console.log('receipt with status', receipt.status)
console.log('at pending:', formatEther(await provider.getBalance(to, 'pending')))

while (BigInt(receipt.blockNumber) > (await provider.getBlockNumber())) {
  await new Promise((resolve) => setTimeout(resolve, 200))
}
console.log('at latest:', formatEther(await provider.getBalance(to, 'latest')))
provider.destroy()
