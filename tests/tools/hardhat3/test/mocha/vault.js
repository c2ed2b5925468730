// The sample project of Hardhat 3 with ethers and mocha, and its chai matchers.

import { expect } from 'chai'
import { network } from 'hardhat'

const { ethers, networkHelpers } = await network.getOrCreate()
const YEAR = 365 * 24 * 60 * 60
const AMOUNT = 1_000_000_000n

const deployVault = async () => {
  const [owner, other] = await ethers.getSigners()
  const unlockTime = (await networkHelpers.time.latest()) + YEAR
  const vault = await ethers.deployContract('Vault', [unlockTime], { value: AMOUNT })
  await vault.waitForDeployment()
  return { vault, unlockTime, owner, other }
}
const fixture = () => networkHelpers.loadFixture(deployVault)

describe('ethers', () => {
  it('deploys with the right state', async () => {
    const { vault, unlockTime, owner } = await fixture()
    expect(await vault.unlockTime()).to.equal(unlockTime)
    expect(await vault.owner()).to.equal(owner.address)
  })
  it('reads what it wrote, again and again', async () => {
    const { vault } = await fixture()
    for (let number = 1n; number <= 10n; number++) {
      await (await vault.setNumber(number)).wait()
      expect(await vault.number()).to.equal(number)
    }
  })
  it('emit withArgs', async () => {
    const { vault, owner } = await fixture()
    await expect(vault.increment()).to.emit(vault, 'Changed').withArgs(owner.address, 1n)
  })
  it('revertedWith and its like', async () => {
    const { vault, other } = await fixture()
    await expect(vault.failWithReason()).to.be.revertedWith('not today')
    await expect(vault.panic()).to.be.revertedWithPanic(0x01)
    await expect(vault.failWithoutReason()).to.be.revertedWithoutReason(ethers)
    await expect(vault.connect(other).onlyOwner())
      .to.be.revertedWithCustomError(vault, 'Forbidden')
      .withArgs(other.address)
    await expect(vault.withdraw()).to.be.revert(ethers)
  })
  it('changeEtherBalances', async () => {
    const { vault, unlockTime, owner, other } = await fixture()
    await expect(owner.sendTransaction({ to: other.address, value: 7 })).to.changeEtherBalance(
      ethers, other, 7,
    )
    await networkHelpers.time.increaseTo(unlockTime)
    await expect(vault.withdraw()).to.changeEtherBalances(ethers, [owner, vault], [AMOUNT, -AMOUNT])
  })
  it('changeTokenBalance', async () => {
    const { owner, other } = await fixture()
    const token = await ethers.deployContract('Token')
    await token.waitForDeployment()
    await expect(token.transfer(other, 5)).to.changeTokenBalances(ethers, token, [owner, other], [-5, 5])
  })
  it('impersonated signers', async () => {
    const { vault, owner } = await fixture()
    const signer = await ethers.getImpersonatedSigner('0x000000000000000000000000000000000000bEEF')
    await (await owner.sendTransaction({ to: signer, value: 10n ** 18n })).wait()
    await expect(vault.connect(signer).setNumber(5)).to.emit(vault, 'Changed').withArgs(signer.address, 5)
  })
})
