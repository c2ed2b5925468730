// Results of scenarios, printed as one JSON object: numbers as decimal texts, hex in lower case.

/** Run the named scenarios, or all, and print their results. */
export const tell = async (scenarios, named, ...given) => {
  const accounts = {}
  for (const name of named.length ? named : Object.keys(scenarios)) {
    accounts[name] = await scenarios[name](...given)
  }
  process.stdout.write(`${JSON.stringify(accounts, plainly)}\n`)
}

const plainly = (_, value) => {
  if (typeof value === 'bigint' || typeof value === 'number') return `${value}`
  return typeof value === 'string' && value.startsWith('0x') ? value.toLowerCase() : value
}
