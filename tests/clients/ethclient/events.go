package main

import (
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient/gethclient"
)

func logs(g *given) any {
	from := new(big.Int).SetUint64(must(g.client.BlockNumber(g.ctx)))
	address, to := g.deploy(), nobody()
	receipts := []*types.Receipt{
		g.transfer(address, to, 1), g.transfer(address, to, 2), g.transfer(address, nobody(), 3),
	}
	ask := func(topics ...[]common.Hash) []types.Log {
		return must(g.client.FilterLogs(g.ctx, ethereum.FilterQuery{
			FromBlock: from, ToBlock: g.top(), Addresses: []common.Address{address}, Topics: topics,
		}))
	}
	all := ask()
	places := len(all) == len(receipts)
	for i, each := range all {
		places = places && each.TxHash == receipts[i].TxHash
	}
	by := func(account common.Address) []types.Log {
		return ask([]common.Hash{transfers}, nil, []common.Hash{common.BytesToHash(account[:])})
	}
	last := g.seal(receipts[2])
	block := must(g.client.FilterLogs(g.ctx, ethereum.FilterQuery{
		BlockHash: &last.BlockHash, Addresses: []common.Address{address},
	}))
	return object{
		"all": valuesOf(all), "places": places, "received": valuesOf(by(to)),
		"events": valuesOf(ask([]common.Hash{transfers})), "nothing": valuesOf(by(address)),
		"inBlock": slices.ContainsFunc(block, func(each types.Log) bool {
			return each.TxHash == last.TxHash && each.Index == last.Logs[0].Index
		}),
	}
}

func watchEvent(g *given) any {
	address := g.deploy()
	found := make(chan types.Log, 1000)
	query := ethereum.FilterQuery{Addresses: []common.Address{address}}
	subscription := must(g.client.SubscribeFilterLogs(g.ctx, query, found))
	defer subscription.Unsubscribe()
	for _, value := range []int64{1, 2} {
		g.transfer(address, nobody(), value)
	}
	g.seal(g.transfer(address, nobody(), 3))
	g.transfer(address, nobody(), 9)
	seen := []string{}
	for !slices.Contains(seen, "9") {
		select {
		case each := <-found:
			if each.Removed {
				seen = append(seen, "removed")
			}
			seen = append(seen, new(big.Int).SetBytes(each.Data).String())
		case err := <-subscription.Err():
			check(err)
		}
	}
	return seen
}

// heads computes a header's hash from its fields, as go-ethereum does: a missing field changes it.
func heads(g *given) any {
	found := make(chan *types.Header, 100)
	subscription := must(g.client.SubscribeNewHead(g.ctx, found))
	defer subscription.Unsubscribe()
	first := <-found
	chained, numbers := true, true
	for range 2 {
		next := <-found
		chained = chained && next.ParentHash == first.Hash()
		numbers = numbers && next.Number.Uint64() == first.Number.Uint64()+1
		first = next
	}
	return object{"chained": chained, "numbers": numbers}
}

func pool(g *given) any {
	found := make(chan common.Hash, 1000)
	client := gethclient.New(g.client.Client())
	subscription := must(client.SubscribePendingTransactions(g.ctx, found))
	defer subscription.Unsubscribe()
	to := nobody()
	receipt := g.send(&to, 1, nil)
	for <-found != receipt.TxHash {
	}
	return "1"
}
