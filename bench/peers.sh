#!/bin/bash
# Install the servers that `foreblock bench rpc` compares with, and the load generator,
# into build/peers (or the folder given): anvil with npm, geth with go. nginx and wrk come
# from the system's packages and need root for that once. What is there already stays.
set -euo pipefail

folder=${1:-$(dirname "$0")/../build/peers}
geth_version=v1.17.2
anvil_version=1.7.1
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

if [ ${#missing[@]} -gt 0 ]; then
  printf '%s\n' "${missing[@]}" >&2
  exit 1
fi
