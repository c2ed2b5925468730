package main

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// reorgs keeps the logs of a subscription, and takes back those marked as removed.
//
// It transfers until some were removed, and then until it agrees with the chain.
func reorgs(g *given) any {
	query := ethereum.FilterQuery{Addresses: []common.Address{g.deploy()}}
	found := make(chan types.Log, 1000)
	subscription := must(g.client.SubscribeFilterLogs(g.ctx, query, found))
	defer subscription.Unsubscribe()
	query.FromBlock = big.NewInt(0)
	kept, removed := map[string]bool{}, false
	for !removed || !same(kept, must(g.client.FilterLogs(g.ctx, query))) {
		g.seal(g.transfer(query.Addresses[0], nobody(), 1))
		for len(found) > 0 {
			each := <-found
			if kept[place(each)] != each.Removed {
				return fmt.Sprintf("told twice, or taken back before it was told: %v", each)
			}
			if kept[place(each)] = !each.Removed; each.Removed {
				delete(kept, place(each))
				removed = true
			}
		}
	}
	return object{"removed": removed, "kept": len(kept) > 1}
}

func place(each types.Log) string { return fmt.Sprint(each.BlockHash, each.Index) }

func same(kept map[string]bool, chain []types.Log) bool {
	for _, each := range chain {
		if !kept[place(each)] {
			return false
		}
	}
	return len(kept) == len(chain)
}
