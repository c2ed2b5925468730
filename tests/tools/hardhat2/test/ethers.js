// The sample project of Hardhat with ethers, and every matcher of hardhat-chai-matchers.

const { loadFixture, time } = require('@nomicfoundation/hardhat-network-helpers')
const { anyUint, anyValue } = require('@nomicfoundation/hardhat-chai-matchers/withArgs')
const { expect } = require('chai')
const { ethers } = require('hardhat')

const YEAR = 365 * 24 * 60 * 60
const AMOUNT = 1_000_000_000n

const deployVault = async () => {
  const unlockTime = (await time.latest()) + YEAR
  const [owner, other] = await ethers.getSigners()
  const vault = await ethers.deployContract('Vault', [unlockTime], { value: AMOUNT })
  await vault.waitForDeployment()
  return { vault, unlockTime, owner, other }
}
const deployToken = async () => {
  const token = await ethers.deployContract('Token')
  await token.waitForDeployment()
  return { token, ...(await deployVault()) }
}

describe('ethers', () => {
  it('deploys with the right state', async () => {
    const { vault, unlockTime, owner } = await loadFixture(deployVault)
    expect(await vault.unlockTime()).to.equal(unlockTime)
    expect(await vault.owner()).to.equal(owner.address)
    expect(await ethers.provider.getBalance(vault.target)).to.equal(AMOUNT)
  })
  it('reads what it wrote, again and again', async () => {
    const { vault } = await loadFixture(deployVault)
    for (let number = 1n; number <= 10n; number++) {
      await (await vault.setNumber(number)).wait()
      expect(await vault.number()).to.equal(number)
    }
  })
  it('emit', async () => {
    const { vault } = await loadFixture(deployVault)
    await expect(vault.setNumber(3)).to.emit(vault, 'Changed')
    await expect(vault.increment()).not.to.emit(vault, 'Withdrawn')
  })
  it('emit withArgs', async () => {
    const { vault, unlockTime, owner } = await loadFixture(deployVault)
    await expect(vault.setNumber(3)).to.emit(vault, 'Changed').withArgs(owner.address, 3)
    await time.increaseTo(unlockTime)
    await expect(vault.withdraw()).to.emit(vault, 'Withdrawn').withArgs(anyValue, anyUint)
  })
  it('revertedWith', async () => {
    const { vault } = await loadFixture(deployVault)
    await expect(vault.failWithReason()).to.be.revertedWith('not today')
  })
  it('revertedWithCustomError', async () => {
    const { vault, other, unlockTime } = await loadFixture(deployVault)
    await expect(vault.withdraw()).to.be.revertedWithCustomError(vault, 'TooEarly')
    await time.increaseTo(unlockTime)
    await expect(vault.connect(other).withdraw())
      .to.be.revertedWithCustomError(vault, 'Forbidden')
      .withArgs(other.address)
  })
  it('revertedWithPanic', async () => {
    const { vault } = await loadFixture(deployVault)
    await expect(vault.panic()).to.be.revertedWithPanic(0x01)
  })
  it('revertedWithoutReason', async () => {
    const { vault } = await loadFixture(deployVault)
    await expect(vault.failWithoutReason()).to.be.revertedWithoutReason()
  })
  it('reverted, in a call and in a transaction', async () => {
    const { vault, other } = await loadFixture(deployVault)
    await expect(vault.connect(other).onlyOwner()).to.be.reverted
    await expect(vault.failWithReason({ gasLimit: 100_000 })).to.be.reverted
    await expect(vault.setNumber(1)).not.to.be.reverted
  })
  it('changeEtherBalance', async () => {
    const { other, owner } = await loadFixture(deployVault)
    const send = () => owner.sendTransaction({ to: other.address, value: 7 })
    await expect(send).to.changeEtherBalance(other, 7)
    await expect(send()).to.changeEtherBalance(owner, -7)
  })
  it('changeEtherBalances', async () => {
    const { vault, unlockTime, owner } = await loadFixture(deployVault)
    await time.increaseTo(unlockTime)
    await expect(vault.withdraw()).to.changeEtherBalances([owner, vault], [AMOUNT, -AMOUNT])
  })
  it('changeEtherBalance with fees', async () => {
    const { owner, other } = await loadFixture(deployVault)
    const sent = owner.sendTransaction({ to: other.address, value: 7, gasPrice: 10_000_000_000n })
    await expect(sent).to.changeEtherBalance(owner, -(21_000n * 10_000_000_000n) - 7n, {
      includeFee: true,
    })
  })
  it('changeTokenBalance', async () => {
    const { token, owner, other } = await loadFixture(deployToken)
    await expect(token.transfer(other, 5)).to.changeTokenBalance(token, other, 5)
    await expect(token.transfer(other, 5)).to.changeTokenBalances(token, [owner, other], [-5, 5])
  })
  it('properAddress and other values', async () => {
    const { vault, owner } = await loadFixture(deployVault)
    expect(owner.address).to.be.properAddress
    expect((await vault.setNumber(1)).hash).to.match(/^0x[0-9a-f]{64}$/)
    expect(ethers.ZeroAddress).to.hexEqual('0x0')
  })
  it('impersonated signers', async () => {
    const { vault, owner } = await loadFixture(deployVault)
    const signer = await ethers.getImpersonatedSigner('0x000000000000000000000000000000000000bEEF')
    await (await owner.sendTransaction({ to: signer, value: 10n ** 18n })).wait()
    await expect(vault.connect(signer).setNumber(5))
      .to.emit(vault, 'Changed')
      .withArgs(signer.address, 5)
  })
  it('past events', async () => {
    const { vault } = await loadFixture(deployVault)
    await (await vault.setNumber(9)).wait()
    const found = await vault.queryFilter(vault.filters.Changed)
    expect(found.map(({ args }) => args.number)).to.deep.equal([9n])
  })
})
