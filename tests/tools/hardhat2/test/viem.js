// The sample project of Hardhat with viem, and the examples of its guide to testing.

const { loadFixture, time } = require('@nomicfoundation/hardhat-toolbox-viem/network-helpers')
const { expect } = require('chai')
const hre = require('hardhat')
const { getAddress, parseEther, parseGwei, encodeFunctionData } = require('viem')

const YEAR = 365 * 24 * 60 * 60

const deployVault = async () => {
  const amount = parseGwei('1')
  const unlockTime = BigInt((await time.latest()) + YEAR)
  const [owner, other] = await hre.viem.getWalletClients()
  const vault = await hre.viem.deployContract('Vault', [unlockTime], { value: amount })
  return { vault, unlockTime, amount, owner, other, client: await hre.viem.getPublicClient() }
}

describe('viem', () => {
  it('deploys with the right unlock time', async () => {
    const { vault, unlockTime } = await loadFixture(deployVault)
    expect(await vault.read.unlockTime()).to.equal(unlockTime)
  })
  it('deploys with the right owner', async () => {
    const { vault, owner } = await loadFixture(deployVault)
    expect(await vault.read.owner()).to.equal(getAddress(owner.account.address))
  })
  it('receives and stores the funds', async () => {
    const { vault, amount, client } = await loadFixture(deployVault)
    expect(await client.getBalance({ address: vault.address })).to.equal(amount)
  })
  it('refuses a withdrawal that is too early', async () => {
    const { vault } = await loadFixture(deployVault)
    await expect(vault.write.withdraw()).to.be.rejectedWith('TooEarly')
  })
  it('refuses a withdrawal by another account', async () => {
    const { vault, unlockTime, other } = await loadFixture(deployVault)
    await time.increaseTo(unlockTime)
    const theirs = await hre.viem.getContractAt('Vault', vault.address, { client: { wallet: other } })
    await expect(theirs.write.withdraw()).to.be.rejectedWith('Forbidden')
  })
  it('withdraws when the time has come', async () => {
    const { vault, unlockTime, client } = await loadFixture(deployVault)
    await time.increaseTo(unlockTime)
    const hash = await vault.write.withdraw()
    await client.waitForTransactionReceipt({ hash })
    expect(await client.getBalance({ address: vault.address })).to.equal(0n)
  })
  it('emits an event with the amount', async () => {
    const { vault, unlockTime, amount, client } = await loadFixture(deployVault)
    await time.increaseTo(unlockTime)
    const hash = await vault.write.withdraw()
    const { blockNumber } = await client.waitForTransactionReceipt({ hash })
    const events = await vault.getEvents.Withdrawn({}, { fromBlock: blockNumber })
    expect(events).to.have.lengthOf(1)
    expect(events[0].args.amount).to.equal(amount)
  })
  it('reads what it wrote, again and again', async () => {
    const { vault, client } = await loadFixture(deployVault)
    for (let number = 1n; number <= 10n; number++) {
      const hash = await vault.write.setNumber([number])
      await client.waitForTransactionReceipt({ hash })
      expect(await vault.read.number()).to.equal(number)
    }
  })
  it('decodes custom errors and reasons', async () => {
    const { vault, other } = await loadFixture(deployVault)
    const as = { account: other.account }
    await expect(vault.read.onlyOwner(as)).to.be.rejectedWith('Forbidden')
    await expect(vault.simulate.failWithReason()).to.be.rejectedWith('not today')
    await expect(vault.write.failWithReason()).to.be.rejectedWith('not today')
    await expect(vault.simulate.panic()).to.be.rejectedWith('assert')
  })
  it('has a test client', async () => {
    const { vault, client } = await loadFixture(deployVault)
    const test = await hre.viem.getTestClient()
    const address = '0x000000000000000000000000000000000000dEaD'
    await test.setBalance({ address, value: parseEther('3') })
    expect(await client.getBalance({ address })).to.equal(parseEther('3'))
    await test.impersonateAccount({ address })
    const wallet = await hre.viem.getWalletClient(address)
    const hash = await wallet.sendTransaction({
      to: vault.address,
      data: encodeFunctionData({ abi: vault.abi, functionName: 'setNumber', args: [77n] }),
    })
    await client.waitForTransactionReceipt({ hash })
    expect(await vault.read.number()).to.equal(77n)
    const before = await client.getBlockNumber({ cacheTime: 0 })
    await test.mine({ blocks: 5 })
    const mined = (await client.getBlockNumber({ cacheTime: 0 })) - before
    expect(mined >= 5n).to.equal(true)
  })
  it('sends ether between wallets', async () => {
    const { owner, other, client } = await loadFixture(deployVault)
    const before = await client.getBalance({ address: other.account.address })
    const hash = await owner.sendTransaction({ to: other.account.address, value: 5n })
    await client.waitForTransactionReceipt({ hash })
    expect(await client.getBalance({ address: other.account.address })).to.equal(before + 5n)
  })
})
