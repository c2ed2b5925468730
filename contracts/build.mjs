// Compile the contracts of the dev chain: `npm ci && node build.mjs [FOLDER]`.
//
// Writes two files, which are committed, into FOLDER or to where they belong:
//
//   contracts.json       runtime code by name, what the genesis puts at each address
//   storage-layout.json  slot, offset and type of every variable, for tests to compare
//
// The same sources give the same bytes everywhere: the compiler is pinned exactly, code carries
// no metadata, and a warning is an error.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import solc from "solc";

const here = dirname(fileURLToPath(import.meta.url));
const folder = process.argv[2];
const codePath = join(folder ?? join(here, "../python/foreblock/sequencer"), "contracts.json");
const layoutPath = join(folder ?? here, "storage-layout.json");

const files = readdirSync(here).filter((name) => name.endsWith(".sol")).sort();
const older = files.filter((name) => name.includes("Before"));
const newer = files.filter((name) => !name.includes("Before"));
const contracts = {
  ...compile(newer, "prague"), // what Jovian contains
  ...compile(older, "london"), // what Bedrock contains
};

function compile(names, evmVersion) {
  const output = JSON.parse(solc.compile(JSON.stringify({
    language: "Solidity",
    sources: Object.fromEntries(
      names.map((name) => [name, { content: readFileSync(join(here, name), "utf8") }]),
    ),
    settings: {
      optimizer: { enabled: true, runs: 10_000 },
      evmVersion,
      metadata: { appendCBOR: false, bytecodeHash: "none" },
      outputSelection: { "*": { "*": ["evm.deployedBytecode.object", "storageLayout"] } },
    },
  })));
  if (output.errors?.length) {
    console.error(output.errors.map((error) => error.formattedMessage).join("\n"));
    process.exit(1);
  }
  return output.contracts;
}

const code = {};
const layout = {};
for (const file of files) {
  const name = file.slice(0, -".sol".length);
  const contract = contracts[file][name];
  // A library whose functions are all internal is compiled into those who use it.
  if (name === "FastLz") continue;
  code[name] = "0x" + contract.evm.deployedBytecode.object;
  layout[name] = contract.storageLayout.storage.map(({ label, slot, offset, type }) => ({
    label, slot: Number(slot), offset, type,
  }));
}
writeFileSync(codePath, JSON.stringify(code, null, 2) + "\n");
writeFileSync(layoutPath, JSON.stringify(layout, null, 2) + "\n");
