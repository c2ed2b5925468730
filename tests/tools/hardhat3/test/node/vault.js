// The sample project of Hardhat 3 with viem and node:test, and all its assertions and helpers.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { network } from 'hardhat'
import { getAddress, parseEther } from 'viem'

const { viem, networkHelpers, ignition } = await network.getOrCreate()
const { time } = networkHelpers
const client = await viem.getPublicClient()
const YEAR = 365 * 24 * 60 * 60
const AMOUNT = 1_000_000_000n
const ADDRESS = '0x000000000000000000000000000000000000cafE'

const deployVault = async () => {
  const [owner, other] = await viem.getWalletClients()
  const unlockTime = BigInt((await time.latest()) + YEAR)
  const vault = await viem.deployContract('Vault', [unlockTime], { value: AMOUNT })
  return { vault, unlockTime, owner, other }
}
const fixture = () => networkHelpers.loadFixture(deployVault)
const done = async (hash) => client.waitForTransactionReceipt({ hash: await hash })

describe('viem', () => {
  it('deploys with the right state', async () => {
    const { vault, unlockTime, owner } = await fixture()
    assert.equal(await vault.read.unlockTime(), unlockTime)
    assert.equal(await vault.read.owner(), getAddress(owner.account.address))
    assert.equal(await client.getBalance({ address: vault.address }), AMOUNT)
  })
  it('reads what it wrote, again and again', async () => {
    const { vault } = await fixture()
    for (let number = 1n; number <= 10n; number++) {
      await done(vault.write.setNumber([number]))
      assert.equal(await vault.read.number(), number)
    }
  })
  it('the sum of the events is the state', async () => {
    const { vault } = await fixture()
    const { blockNumber } = await done(vault.write.increment())
    await done(vault.write.increment())
    const events = await client.getContractEvents({
      address: vault.address, abi: vault.abi, eventName: 'Changed', fromBlock: blockNumber, strict: true,
    })
    assert.deepEqual(events.map(({ args }) => args.number), [1n, 2n])
  })
  it('assertions.emit', async () => {
    const { vault } = await fixture()
    await viem.assertions.emit(vault.write.increment(), vault, 'Changed')
  })
  it('assertions.emitWithArgs', async () => {
    const { vault, owner } = await fixture()
    const args = [getAddress(owner.account.address), 1n]
    await viem.assertions.emitWithArgs(vault.write.increment(), vault, 'Changed', args)
  })
  it('assertions.revert', async () => {
    const { vault } = await fixture()
    await viem.assertions.revert(vault.write.failWithReason())
  })
  it('assertions.revertWith', async () => {
    const { vault } = await fixture()
    await viem.assertions.revertWith(vault.write.failWithReason(), 'not today')
  })
  it('assertions.revertWithCustomError', async () => {
    const { vault, unlockTime, other } = await fixture()
    await viem.assertions.revertWithCustomError(vault.write.withdraw(), vault, 'TooEarly')
    await time.increaseTo(unlockTime)
    const asOther = vault.write.withdraw({ account: other.account })
    await viem.assertions.revertWithCustomErrorWithArgs(asOther, vault, 'Forbidden', [
      getAddress(other.account.address),
    ])
  })
  it('assertions.balancesHaveChanged', async () => {
    const { vault, unlockTime, owner, other } = await fixture()
    const { address } = other.account
    await viem.assertions.balancesHaveChanged(owner.sendTransaction({ to: address, value: 7n }), [
      { address, amount: 7n },
    ])
    await time.increaseTo(unlockTime)
    await viem.assertions.balancesHaveChanged(vault.write.withdraw(), [
      { address: vault.address, amount: -AMOUNT },
    ])
  })
  it('a test client', async () => {
    const test = await viem.getTestClient()
    await test.setBalance({ address: ADDRESS, value: parseEther('2') })
    assert.equal(await client.getBalance({ address: ADDRESS }), parseEther('2'))
    await test.mine({ blocks: 3 })
  })
  it('a module of Ignition', { skip: ignition === undefined }, async () => {
    const { default: Vaults } = await import('../../ignition/modules/Vault.js')
    const { vault } = await ignition.deploy(Vaults)
    assert.equal(await vault.read.number(), 7n)
  })
})

describe('network helpers', () => {
  it('time.increase', async () => {
    const before = await time.latest()
    await time.increase(3600)
    const passed = (await time.latest()) - before
    assert(passed >= 3600 && passed <= 3605, `${passed}`)
  })
  it('time.setNextBlockTimestamp', async () => {
    const { vault } = await fixture()
    const when = (await time.latest()) + 500
    await time.setNextBlockTimestamp(when)
    const { blockNumber } = await done(vault.write.increment())
    assert.equal((await client.getBlock({ blockNumber })).timestamp, BigInt(when))
  })
  it('mine and mineUpTo', async () => {
    const before = await time.latestBlock()
    await networkHelpers.mine(10, { interval: 12 })
    assert((await time.latestBlock()) >= before + 10)
    await networkHelpers.mineUpTo(before + 50)
    assert((await time.latestBlock()) >= before + 50)
  })
  it('setBalance, setCode, setNonce, setStorageAt', async () => {
    const { vault } = await fixture()
    await networkHelpers.setBalance(ADDRESS, 5n)
    assert.equal(await client.getBalance({ address: ADDRESS }), 5n)
    const code = await client.getCode({ address: vault.address })
    await networkHelpers.setCode(ADDRESS, code)
    assert.equal(await client.getCode({ address: ADDRESS }), code)
    await networkHelpers.setStorageAt(vault.address, 0, 42)
    assert.equal(await vault.read.number(), 42n)
    assert.equal(BigInt(await networkHelpers.getStorageAt(vault.address, 0)), 42n)
    await networkHelpers.setNonce(ADDRESS, 100)
    assert.equal(await client.getTransactionCount({ address: ADDRESS }), 100)
  })
  it('impersonateAccount and stopImpersonatingAccount', async () => {
    const { vault } = await fixture()
    const address = '0x000000000000000000000000000000000000bEEF'
    await networkHelpers.setBalance(address, 10n ** 18n)
    await networkHelpers.impersonateAccount(address)
    await done(vault.write.setNumber([8n], { account: address }))
    assert.equal(await vault.read.number(), 8n)
    await networkHelpers.stopImpersonatingAccount(address)
    await assert.rejects(vault.write.setNumber([9n], { account: address }))
  })
  it('takeSnapshot and restore', async () => {
    const { vault } = await fixture()
    const snapshot = await networkHelpers.takeSnapshot()
    for (const _ of [1, 2]) {
      await done(vault.write.setNumber([2n]))
      await snapshot.restore()
      assert.equal(await vault.read.number(), 0n)
    }
  })
  it('setCoinbase, setBlockGasLimit, setNextBlockBaseFeePerGas', async () => {
    await networkHelpers.setCoinbase(ADDRESS)
    await networkHelpers.setBlockGasLimit(20_000_000)
    await networkHelpers.setNextBlockBaseFeePerGas(3_000_000_000)
    await networkHelpers.mine()
    const { miner, gasLimit, baseFeePerGas } = await client.getBlock()
    assert.equal(getAddress(miner), getAddress(ADDRESS))
    assert.equal(gasLimit, 20_000_000n)
    assert.equal(baseFeePerGas, 3_000_000_000n)
  })
  it('setPrevRandao', async () => {
    await networkHelpers.setPrevRandao(12345)
    await networkHelpers.mine()
    assert.equal(BigInt((await client.getBlock()).mixHash), 12345n)
  })
})
