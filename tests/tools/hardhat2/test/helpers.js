// Every helper of hardhat-network-helpers.

const helpers = require('@nomicfoundation/hardhat-network-helpers')
const { expect } = require('chai')
const { ethers, network } = require('hardhat')

const { time } = helpers
const ADDRESS = '0x000000000000000000000000000000000000cafE'
const ETHER = 10n ** 18n

const deployVault = async () => {
  const vault = await ethers.deployContract('Vault', [0])
  await vault.waitForDeployment()
  return { vault, signers: await ethers.getSigners() }
}
const automine = (enabled) => ethers.provider.send('evm_setAutomine', [enabled])

describe('network helpers', () => {
  it('loadFixture', async () => {
    const { vault } = await helpers.loadFixture(deployVault)
    await (await vault.setNumber(5)).wait()
    for (const _ of [1, 2, 3]) {
      const { vault: again } = await helpers.loadFixture(deployVault)
      expect(again.target).to.equal(vault.target)
      expect(await again.number()).to.equal(0)
      await (await again.setNumber(6)).wait()
      expect(await again.number()).to.equal(6)
    }
  })
  it('time.latest and time.latestBlock', async () => {
    const block = await ethers.provider.getBlock('latest')
    expect(await time.latestBlock()).to.be.at.least(block.number)
    expect(await time.latest()).to.be.at.least(block.timestamp)
  })
  it('time.increase', async () => {
    const before = await time.latest()
    await time.increase(time.duration.hours(1))
    expect(await time.latest()).to.be.within(before + 3600, before + 3605)
  })
  it('time.increaseTo', async () => {
    const when = (await time.latest()) + 1000
    await time.increaseTo(when)
    expect(await time.latest()).to.be.within(when, when + 5)
  })
  it('time.setNextBlockTimestamp', async () => {
    const { vault } = await helpers.loadFixture(deployVault)
    const when = (await time.latest()) + 500
    await time.setNextBlockTimestamp(when)
    const { blockNumber } = await (await vault.increment()).wait()
    expect((await ethers.provider.getBlock(blockNumber)).timestamp).to.equal(when)
  })
  it('mine', async () => {
    const before = await time.latestBlock()
    await helpers.mine()
    await helpers.mine(10)
    expect(await time.latestBlock()).to.be.within(before + 11, before + 14)
  })
  it('mine with an interval', async () => {
    const before = await time.latest()
    await helpers.mine(11, { interval: 15 })
    expect(await time.latest()).to.be.within(before + 150, before + 170)
  })
  it('mine a thousand', async () => {
    const before = await time.latestBlock()
    await helpers.mine(1000)
    expect(await time.latestBlock()).to.be.within(before + 1000, before + 1005)
  })
  it('mineUpTo', async () => {
    const height = (await time.latestBlock()) + 20
    await helpers.mineUpTo(height)
    expect(await time.latestBlock()).to.be.within(height, height + 1)
  })
  it('setBalance', async () => {
    await helpers.setBalance(ADDRESS, 3n * ETHER)
    expect(await ethers.provider.getBalance(ADDRESS)).to.equal(3n * ETHER)
  })
  it('setCode', async () => {
    const { vault } = await helpers.loadFixture(deployVault)
    const code = await ethers.provider.getCode(vault.target)
    await helpers.setCode(ADDRESS, code)
    expect(await ethers.provider.getCode(ADDRESS)).to.equal(code)
  })
  it('setStorageAt and getStorageAt', async () => {
    const { vault } = await helpers.loadFixture(deployVault)
    await helpers.setStorageAt(vault.target, 0, 42)
    expect(BigInt(await helpers.getStorageAt(vault.target, 0))).to.equal(42n)
    expect(await vault.number()).to.equal(42)
  })
  it('setNonce', async () => {
    await helpers.setNonce(ADDRESS, 100)
    expect(await ethers.provider.getTransactionCount(ADDRESS)).to.equal(100)
  })
  it('impersonateAccount and stopImpersonatingAccount', async () => {
    const { vault } = await helpers.loadFixture(deployVault)
    const address = '0x000000000000000000000000000000000000bEEF'
    await helpers.setBalance(address, ETHER)
    await helpers.impersonateAccount(address)
    const signer = await ethers.getSigner(address)
    await (await vault.connect(signer).setNumber(8)).wait()
    expect(await vault.number()).to.equal(8)
    await helpers.stopImpersonatingAccount(address)
    let refused = false
    await vault.connect(signer).setNumber(9).catch(() => (refused = true))
    expect(refused).to.equal(true)
  })
  it('setCoinbase', async () => {
    await helpers.setCoinbase(ADDRESS)
    await helpers.mine()
    expect((await ethers.provider.getBlock('latest')).miner).to.equal(ADDRESS)
  })
  it('setPrevRandao', async () => {
    await helpers.setPrevRandao(12345)
    await helpers.mine()
    const { mixHash } = await ethers.provider.send('eth_getBlockByNumber', ['latest', false])
    expect(BigInt(mixHash)).to.equal(12345n)
  })
  it('setNextBlockBaseFeePerGas', async () => {
    await helpers.setNextBlockBaseFeePerGas(3_000_000_000)
    await helpers.mine()
    expect((await ethers.provider.getBlock('latest')).baseFeePerGas).to.equal(3_000_000_000n)
  })
  for (const fee of [50_000_000_000n, 7n, 0n]) {
    it(`transactions after setNextBlockBaseFeePerGas(${fee})`, async () => {
      const [{ address }, signer] = await ethers.getSigners()
      const sends = {
        ethers: () => signer.sendTransaction({ to: ADDRESS, value: 1 }),
        legacy: async () => {
          const { gasPrice } = await ethers.provider.getFeeData()
          return signer.sendTransaction({ to: ADDRESS, type: 0, gasPrice })
        },
        hardhat: async () => {
          const params = [{ from: address, to: ADDRESS, value: '0x1' }]
          const hash = await network.provider.send('eth_sendTransaction', params)
          return ethers.provider.getTransaction(hash)
        },
      }
      for (const send of Object.values(sends)) {
        await helpers.setNextBlockBaseFeePerGas(fee)
        const { blockNumber } = await (await send()).wait()
        expect((await ethers.provider.getBlock(blockNumber)).baseFeePerGas).to.equal(fee)
      }
    })
  }
  it('accounts are set while a transaction waits', async () => {
    const { vault, signers } = await helpers.loadFixture(deployVault)
    const to = '0x000000000000000000000000000000000000c0de'
    await automine(false)
    const { hash } = await signers[0].sendTransaction({ to, value: 5 })
    await helpers.setBalance(to, 100)
    expect(await ethers.provider.getBalance(to)).to.equal(100n)
    await helpers.setNonce(ADDRESS, 200)
    expect(await ethers.provider.getTransactionCount(ADDRESS)).to.equal(200)
    await helpers.setCode(ADDRESS, '0x00')
    expect(await ethers.provider.getCode(ADDRESS)).to.equal('0x00')
    await helpers.setStorageAt(vault.target, 0, 43)
    expect(await vault.number()).to.equal(43)
    await helpers.mine()
    expect((await ethers.provider.getTransactionReceipt(hash)).status).to.equal(1)
    expect(await ethers.provider.getBalance(to)).to.equal(105n)
    await automine(true)
  })
  it('the pool, by sender', async () => {
    const [{ address }] = await ethers.getSigners()
    await automine(false)
    const nonce = await ethers.provider.getTransactionCount(address)
    const { hash } = await (await ethers.getSigner(address)).sendTransaction({ to: ADDRESS })
    const { pending } = await ethers.provider.send('txpool_content', [])
    expect(Object.keys(pending).map((each) => each.toLowerCase())).to.deep.equal([address.toLowerCase()])
    expect(Object.values(pending)[0][nonce].hash).to.equal(hash)
    await helpers.mine()
    expect(await ethers.provider.send('txpool_status', [])).to.deep.equal({ pending: '0x0', queued: '0x0' })
    await automine(true)
  })
  it('setBlockGasLimit', async () => {
    await helpers.setBlockGasLimit(20_000_000)
    await helpers.mine()
    expect((await ethers.provider.getBlock('latest')).gasLimit).to.equal(20_000_000n)
  })
  it('takeSnapshot and restore', async () => {
    const { vault } = await helpers.loadFixture(deployVault)
    await (await vault.setNumber(1)).wait()
    const snapshot = await helpers.takeSnapshot()
    for (const _ of [1, 2]) {
      await (await vault.setNumber(2)).wait()
      expect(await vault.number()).to.equal(2)
      await snapshot.restore()
      expect(await vault.number()).to.equal(1)
    }
  })
  it('dropTransaction', async () => {
    const { signers } = await helpers.loadFixture(deployVault)
    await automine(false)
    const { hash } = await signers[0].sendTransaction({ to: ADDRESS, value: 1 })
    await helpers.dropTransaction(hash)
    await helpers.mine()
    expect(await ethers.provider.getTransaction(hash)).to.equal(null)
    await automine(true)
  })
  it('clearSnapshots', async () => {
    await helpers.clearSnapshots()
    const { vault } = await helpers.loadFixture(deployVault)
    expect(await vault.number()).to.equal(0)
  })
  it('reset', async () => {
    await helpers.reset()
    expect(await time.latestBlock()).to.be.at.most(1)
    const { vault } = await deployVault()
    expect(await vault.number()).to.equal(0)
  })
})
