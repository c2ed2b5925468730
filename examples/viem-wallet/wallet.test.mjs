// Start `foreblock dev` first; RPC_URL names another endpoint.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeWallet } from './wallet.mjs'

const URL = process.env.RPC_URL ?? 'http://127.0.0.1:8545'
const ALICE = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d'
const CAROL = '0xca501ca501ca501ca501ca501ca501ca501ca501'

test('a lost pre-confirmation is taken back, and comes again', async () => {
  const wallet = makeWallet(URL, ALICE)
  const chain = (method, ...params) => wallet.request({ method, params })
  await chain('evm_setAutomine', false) // blocks are sealed on command,
  await chain('foreblock_setFlashblockInterval', 0) // and flashblocks closed on command
  try {
    const { sealed: before } = await wallet.balance(CAROL)
    const hash = await wallet.send(CAROL, 1n)
    assert.equal(await wallet.state(hash), 'unknown')

    await chain('foreblock_closeFlashblock')
    assert.equal(await wallet.state(hash), 'pre-confirmed')
    assert.deepEqual(await wallet.balance(CAROL), { sealed: before, provisional: 1n })

    await chain('foreblock_dropTail') // the block is sealed without the flashblock
    assert.equal(await wallet.state(hash), 'unknown')
    assert.deepEqual(await wallet.balance(CAROL), { sealed: before, provisional: 0n })

    await chain('evm_mine') // the payment waited, and is in the next block
    assert.equal(await wallet.state(hash), 'sealed')
    assert.deepEqual(await wallet.balance(CAROL), { sealed: before + 1n, provisional: 0n })
  } finally {
    await chain('foreblock_setFlashblockInterval', 200)
    await chain('evm_setIntervalMining', 2)
  }
})
