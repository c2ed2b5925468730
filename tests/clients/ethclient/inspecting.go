package main

import (
	"encoding/json"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient/gethclient"
	"github.com/ethereum/go-ethereum/ethdb/memorydb"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// proven is the value of a key by go-ethereum's own verifier; nil if the proof shows absence.
func proven(root common.Hash, key []byte, proof []string) []byte {
	nodes := memorydb.New()
	for _, each := range proof {
		node := hexutil.MustDecode(each)
		check(nodes.Put(crypto.Keccak256(node), node))
	}
	return must(trie.VerifyProof(root, crypto.Keccak256(key), nodes))
}

func proof(g *given) any {
	address, to := g.deploy(), nobody()
	receipt := g.seal(g.transfer(address, to, 1))
	keys := []string{}
	for _, each := range []common.Address{g.us, to, address} {
		keys = append(keys, slotOf(each).Hex())
	}
	client := gethclient.New(g.client.Client())
	found := must(client.GetProof(g.ctx, address, keys, receipt.BlockNumber))
	head := must(g.client.HeaderByNumber(g.ctx, receipt.BlockNumber))
	var account types.StateAccount
	check(rlp.DecodeBytes(proven(head.Root, address[:], found.AccountProof), &account))
	values, same := []*big.Int{}, true
	for _, each := range found.StorageProof {
		value := new(big.Int)
		key := common.HexToHash(each.Key)
		if stored := proven(found.StorageHash, key[:], each.Proof); stored != nil {
			var bytes []byte
			check(rlp.DecodeBytes(stored, &bytes))
			value.SetBytes(bytes)
		}
		values = append(values, value)
		same = same && value.Cmp(each.Value) == 0
	}
	return object{
		"balance": account.Balance.String(), "nonce": text(account.Nonce), "values": texts(values),
		"code": common.BytesToHash(account.CodeHash) == crypto.Keccak256Hash(token.Code),
		"root": account.Root == found.StorageHash, "storageRoots": same,
	}
}

func accessList(g *given) any {
	address, to := g.deploy(), nobody()
	g.seal(g.transfer(address, nobody(), 1)) // it reads at `pending`, or at the node's default
	client := gethclient.New(g.client.Client())
	list, gas, failed, err := client.CreateAccessList(g.ctx, ethereum.CallMsg{
		From: g.us, To: &address, Data: call(to, 1),
	})
	check(err)
	slots := []bool{}
	for _, each := range []common.Address{g.us, to} {
		has := false
		for _, key := range (*list)[0].StorageKeys {
			has = has || key == slotOf(each)
		}
		slots = append(slots, has)
	}
	return object{
		"token": len(*list) == 1 && (*list)[0].Address == address && failed == "",
		"slots": slots, "gas": gas > 21_000,
	}
}

func sync(g *given) any {
	to := nobody()
	signed := g.sign(&to, 7, nil)
	receipt := must(g.client.SendTransactionSync(g.ctx, signed, nil))
	status := map[uint64]string{0: "reverted", 1: "success"}[receipt.Status]
	return object{
		"hash": receipt.TxHash == signed.Hash(), "status": status, "gasUsed": text(receipt.GasUsed),
		"balance": must(g.client.BalanceAt(g.ctx, to, g.top())).String(),
	}
}

func trace(g *given) any {
	receipt := g.seal(g.transfer(g.deploy(), nobody(), 1))
	ask := func(result any, options object) {
		check(g.client.Client().CallContext(
			g.ctx, result, "debug_traceTransaction", receipt.TxHash, options,
		))
	}
	var frame struct {
		Type          string
		Input, Output hexutil.Bytes
		GasUsed       hexutil.Uint64
		Calls         []json.RawMessage
	}
	ask(&frame, object{"tracer": "callTracer"})
	var steps struct {
		Gas        uint64
		Failed     bool
		StructLogs []struct{ Op string }
	}
	ask(&steps, object{})
	count := map[string]int{}
	for _, each := range steps.StructLogs {
		count[each.Op]++
	}
	return object{
		"call": object{
			"type": frame.Type, "selector": hexutil.Encode(frame.Input[:4]),
			"output": new(big.Int).SetBytes(frame.Output).String(), "calls": text(len(frame.Calls)),
		},
		"gas": uint64(frame.GasUsed) == receipt.GasUsed && steps.Gas == receipt.GasUsed,
		"steps": object{
			"failed": steps.Failed, "stores": text(count["SSTORE"]), "events": text(count["LOG3"]),
		},
	}
}

// ordinary is an application without pre-confirmations: it reads at `latest`.
func ordinary(g *given) any {
	address, to := g.deploy(), nobody()
	first := must(g.client.NonceAt(g.ctx, g.us, nil))
	code := must(g.client.CodeAt(g.ctx, address, nil))
	reads, nonces, blocks := []string{}, []string{}, []bool{}
	for _, value := range []int64{1, 2, 3} {
		receipt := g.transfer(address, to, value)
		key := slotOf(to)
		read := must(g.client.StorageAt(g.ctx, address, key, nil))
		then := must(g.client.StorageAt(g.ctx, address, key, receipt.BlockNumber))
		reads = append(reads, new(big.Int).SetBytes(read).String())
		nonces = append(nonces, text(must(g.client.NonceAt(g.ctx, g.us, nil))-first))
		head := must(g.client.HeaderByNumber(g.ctx, receipt.BlockNumber))
		blocks = append(blocks, head.Hash() == receipt.BlockHash && string(read) == string(then))
	}
	return object{
		"code": string(code) == string(token.Code), "reads": reads, "nonces": nonces, "blocks": blocks,
	}
}
