// Hardhat's own network, forked from the chain of the run at a block of it.

const helpers = require('@nomicfoundation/hardhat-network-helpers')
const { expect } = require('chai')
const { ethers, network } = require('hardhat')

const NOBODY = '0x000000000000000000000000000000000000cafE'
const upstream = new ethers.JsonRpcProvider(process.env.RPC_URL)

const fork = (blockNumber) =>
  network.provider.request({
    method: 'hardhat_reset',
    params: [{ forking: { jsonRpcUrl: process.env.RPC_URL, blockNumber } }],
  })

describe('forking', () => {
  let vault, block, changed, later

  before(async () => {
    const owner = await upstream.getSigner(0)
    const factory = await ethers.getContractFactory('Vault', owner)
    vault = await factory.deploy(0, { value: 9 })
    await vault.waitForDeployment()
    changed = await (await vault.setNumber(7)).wait()
    block = changed.blockNumber
    later = (await (await vault.setNumber(8)).wait()).blockNumber
  })
  it('begins at a block', async () => {
    await fork(block)
    expect(await ethers.provider.getBlockNumber()).to.equal(block)
  })
  it('has a block of its own', async () => {
    await helpers.mine() // Hardhat runs no calls in blocks of a chain whose rules it does not know
    expect(await ethers.provider.getBlockNumber()).to.equal(block + 1)
  })
  it('reads state, code and balances of the block', async () => {
    const there = await ethers.getContractAt('Vault', vault.target)
    expect(await there.number()).to.equal(7)
    expect(await ethers.provider.getCode(vault.target)).to.equal(await upstream.getCode(vault.target))
    expect(await ethers.provider.getBalance(vault.target)).to.equal(9)
  })
  it('reads blocks, receipts and logs below it', async () => {
    const receipt = await ethers.provider.getTransactionReceipt(changed.hash)
    expect(receipt.blockHash).to.equal(changed.blockHash)
    const { hash } = await ethers.provider.getBlock(block)
    expect(hash).to.equal(changed.blockHash)
    const logs = await ethers.provider.getLogs({ address: vault.target, fromBlock: 0, toBlock: block })
    expect(logs.map((log) => log.data)).to.deep.equal(changed.logs.map((log) => log.data))
  })
  it('runs transactions on it', async () => {
    const [signer] = await ethers.getSigners()
    const there = await ethers.getContractAt('Vault', vault.target, signer)
    await (await there.setNumber(20)).wait()
    expect(await there.number()).to.equal(20)
    expect(await vault.number()).to.equal(8)
  })
  it('impersonates an account', async () => {
    await helpers.setBalance(NOBODY, 10n ** 18n)
    await helpers.impersonateAccount(NOBODY)
    const there = await ethers.getContractAt('Vault', vault.target, await ethers.getSigner(NOBODY))
    await (await there.setNumber(21)).wait()
    expect(await there.number()).to.equal(21)
  })
  it('begins again at another block', async () => {
    await fork(later)
    await helpers.mine()
    const there = await ethers.getContractAt('Vault', vault.target)
    expect(await there.number()).to.equal(8)
  })
})
