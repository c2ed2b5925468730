// Waiting for later states of a chain, for the scenarios that follow it.

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** The result of the condition once it is truthy. */
export const until = async (condition) => {
  for (;;) {
    const found = await condition()
    if (found) return found
    await sleep(20)
  }
}

/**
 * The values that a watcher sees of transfers of 1, 2, 3, and of 9 in a later block.
 *
 * Libraries do not report when a watcher is in place; so transfers of 0 are sent until it sees
 * one. Duplicates and late values then precede the 9.
 */
export const watched = async (seen, transfer, sealed) => {
  while (!seen.length) await transfer(0n)
  for (const value of [1n, 2n]) await transfer(value)
  await sealed(await transfer(3n))
  await transfer(9n)
  await until(() => seen.includes(9n))
  return seen.filter((value) => value !== 0n)
}

/** Return whether heads are consecutive, by number and by hash. */
export const chained = (heads) =>
  heads.every(
    ({ number, parentHash }, index) =>
      index === 0 ||
      (BigInt(number) === BigInt(heads[index - 1].number) + 1n && parentHash === heads[index - 1].hash),
  )

/** The call traced by debug_traceTransaction, without values that differ between runs. */
export const callSeen = ({ type, input, output, calls }) => ({
  type, selector: input.slice(0, 10), output: BigInt(output), calls: (calls ?? []).length,
})

/** The required contents of a transfer's struct logs: its gas, its stores, its event. */
export const stepsSeen = ({ failed, structLogs }) => ({
  failed,
  stores: structLogs.filter(({ op }) => op === 'SSTORE').length,
  events: structLogs.filter(({ op }) => op === 'LOG3').length,
})
