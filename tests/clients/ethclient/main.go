// go-ethereum's ethclient: logs, subscriptions, proofs, access lists and traces.
//
//	go run . URL PRIVATE_KEY [SCENARIO ...]
//
// The scenarios and their results are those of api_with_viem.mjs in the parent folder, which
// documents them. Subscriptions need a URL of ws. Prints one JSON object, numbers as decimal texts.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/big"
	"net/url"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
)

type object = map[string]any

var scenarios = map[string]func(*given) any{
	"logs":       logs,
	"watchEvent": watchEvent,
	"heads":      heads,
	"pool":       pool,
	"proof":      proof,
	"accessList": accessList,
	"sync":       sync,
	"trace":      trace,
	"ordinary":   ordinary,
	"reorgs":     reorgs,
}

func main() {
	address, names := os.Args[1], os.Args[3:]
	parsed := must(url.Parse(address))
	key := must(crypto.HexToECDSA(os.Args[2][2:]))
	client := must(ethclient.Dial(address))
	ctx := context.Background()
	g := &given{
		ctx: ctx, client: client, key: key, us: crypto.PubkeyToAddress(key.PublicKey),
		signer: types.LatestSignerForChainID(must(client.ChainID(ctx))),
		sealed: parsed.Path == "/eth",
	}
	found := object{}
	for _, name := range names {
		found[name] = scenarios[name](g)
	}
	check(json.NewEncoder(os.Stdout).Encode(found))
}

func check(err error) {
	if err != nil {
		log.Panicln(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

// until returns the result of a condition once it succeeds.
func until[T any](condition func() *T) *T {
	for {
		if found := condition(); found != nil {
			return found
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func nobody() common.Address {
	return crypto.PubkeyToAddress(must(crypto.GenerateKey()).PublicKey)
}

// slotOf is the slot of an account in a mapping in slot 0.
func slotOf(account common.Address) common.Hash {
	return crypto.Keccak256Hash(common.LeftPadBytes(account[:], 32), make([]byte, 32))
}

func texts(values []*big.Int) []string {
	made := []string{}
	for _, value := range values {
		made = append(made, value.String())
	}
	return made
}

func text(value any) string { return fmt.Sprint(value) }
