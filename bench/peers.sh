#!/bin/bash
# Install what benchmarks compare with into build/peers (or the folder given): for
# `foreblock bench rpc` anvil with npm, geth with go, and nginx and wrk of the system's packages,
# which need root for that once; for bench/python_chains.py the Python packages. What is there
# already stays.
set -euo pipefail

folder=${1:-$(dirname "$0")/../build/peers}
geth_version=v1.17.2
anvil_version=1.7.1
python_packages=("web3==8.0.0" "eth-tester[py-evm]==0.14.0b1" "titanoboa==0.2.8" "pyrevm==0.3.7" pytest)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
missing=()

say() { printf '%-6s %s\n' "$1" "$2"; }

for program in nginx wrk; do
  if ! PATH=$PATH:/usr/sbin command -v "$program" >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      apt-get install --yes --no-install-recommends "$program" >"$folder/$program.log" 2>&1 || true
    fi
  fi
  if path=$(PATH=$PATH:/usr/sbin command -v "$program"); then
    say "$program" "$path"
  else
    missing+=("$program: install the package $program (Debian: apt-get install $program)")
  fi
done

if [ -x "$folder/node_modules/.bin/anvil" ]; then
  say anvil "$folder/node_modules/.bin/anvil"
elif command -v npm >/dev/null && npm install --silent --prefix "$folder" "@foundry-rs/anvil@$anvil_version" >"$folder/anvil.log" 2>&1; then
  say anvil "$folder/node_modules/.bin/anvil"
else
  missing+=("anvil: npm is missing or failed, see $folder/anvil.log")
fi

if [ -x "$folder/bin/geth" ]; then
  say geth "$folder/bin/geth"
elif command -v go >/dev/null && GOBIN="$folder/bin" go install "github.com/ethereum/go-ethereum/cmd/geth@$geth_version" >"$folder/geth.log" 2>&1; then
  say geth "$folder/bin/geth"
else
  missing+=("geth: go is missing or failed, see $folder/geth.log")
fi

if "$folder/python/bin/python" -c "import boa, eth.chains, eth_tester, pyrevm, pytest, web3" 2>/dev/null; then
  say python "$folder/python/bin/python"
elif python3 -m venv "$folder/python" && "$folder/python/bin/python" -m pip install --quiet "${python_packages[@]}" >"$folder/python.log" 2>&1; then
  say python "$folder/python/bin/python"
else
  missing+=("python: python3 is missing, or pip failed, see $folder/python.log")
fi

if [ ${#missing[@]} -gt 0 ]; then
  printf '%s\n' "${missing[@]}" >&2
  exit 1
fi
