// go-ethereum's bind: a contract deployed, used, filtered and watched, and a chain committed by
// hand like the simulated backend.
//
// The runner sets the variables RPC_URL and WS_URL (run.py in the parent folder).
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
)

// The first account of the default mnemonic of development chains.
const key = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"

var nobody = common.HexToAddress("0x4444444444444444444444444444444444444444")

// flow is a client of each kind, an account and a contract.
type flow struct {
	ctx      context.Context
	client   *ethclient.Client
	watcher  *ethclient.Client
	account  *bind.TransactOpts
	abi      abi.ABI
	address  common.Address
	contract *bind.BoundContract
}

func check(err error) {
	if err != nil {
		log.Fatalln(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func same[T comparable](found, expected T) {
	if found != expected {
		log.Fatalf("found %v, expected %v", found, expected)
	}
}

func ok(step string) { fmt.Println("ok", step) }

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	f := &flow{
		ctx:     ctx,
		client:  must(ethclient.Dial(os.Getenv("RPC_URL"))),
		watcher: must(ethclient.Dial(os.Getenv("WS_URL"))),
	}
	id := must(f.client.ChainID(ctx))
	f.account = must(bind.NewKeyedTransactorWithChainID(must(crypto.HexToECDSA(key)), id))
	f.deploy()
	f.use()
	f.refuse()
	f.filter()
	f.watch()
	f.commit()
}

func (f *flow) deploy() {
	var token struct {
		Abi      json.RawMessage `json:"abi"`
		InitCode hexutil.Bytes   `json:"initCode"`
	}
	path := filepath.Join("..", "..", "clients", "token.json")
	check(json.Unmarshal(must(os.ReadFile(path)), &token))
	f.abi = must(abi.JSON(strings.NewReader(string(token.Abi))))
	_, sent, contract, err := bind.DeployContract(f.account, f.abi, token.InitCode, f.client)
	check(err)
	f.contract = contract
	f.address = must(bind.WaitDeployed(f.ctx, f.client, sent))
	ok("DeployContract")
}

func (f *flow) balance(account common.Address, options *bind.CallOpts) int64 {
	var found []any
	check(f.contract.Call(options, &found, "balanceOf", account))
	return found[0].(*big.Int).Int64()
}

func (f *flow) transfer(value int64) *types.Transaction {
	return must(f.contract.Transact(f.account, "transfer", nobody, big.NewInt(value)))
}

func (f *flow) wait(sent *types.Transaction) *types.Receipt {
	receipt := must(bind.WaitMined(f.ctx, f.client, sent))
	same(receipt.Status, types.ReceiptStatusSuccessful)
	return receipt
}

func (f *flow) use() {
	first, second := f.transfer(1), f.transfer(2)
	receipt := f.wait(second)
	f.wait(first)
	same(f.balance(nobody, nil), 3)
	same(f.balance(nobody, &bind.CallOpts{BlockNumber: receipt.BlockNumber}), 3)
	same(f.balance(nobody, &bind.CallOpts{Pending: true}), 3)
	header := must(f.client.HeaderByHash(f.ctx, receipt.BlockHash))
	same(header.Number.Cmp(receipt.BlockNumber), 0)
	ok("Transact and Call")
}

// refuse expects the estimate of a reverting transaction to report the reason.
func (f *flow) refuse() {
	_, err := f.contract.Transact(f.account, "failWithReason")
	if err == nil || !strings.Contains(err.Error(), "not today") {
		log.Fatalln("found", err)
	}
	ok("a revert and its reason")
}

type transfer struct {
	From  common.Address
	To    common.Address
	Value *big.Int
}

func (f *flow) filter() {
	logs, sub, err := f.contract.FilterLogs(&bind.FilterOpts{Start: 0}, "Transfer")
	check(err)
	for _, expected := range []int64{1, 2} {
		same(f.value(<-logs), expected)
	}
	sub.Unsubscribe()
	ok("FilterLogs")
}

func (f *flow) value(found types.Log) int64 {
	var event transfer
	check(f.contract.UnpackLog(&event, "Transfer", found))
	same(event.To, nobody)
	return event.Value.Int64()
}

func (f *flow) watch() {
	watched := bind.NewBoundContract(f.address, f.abi, f.watcher, f.watcher, f.watcher)
	logs, sub, err := watched.WatchLogs(&bind.WatchOpts{Context: f.ctx}, "Transfer")
	check(err)
	heads := make(chan *types.Header, 64)
	following := must(f.watcher.SubscribeNewHead(f.ctx, heads))
	f.wait(f.transfer(4))
	receipt := f.wait(f.transfer(5))
	for _, expected := range []int64{4, 5} {
		select {
		case found := <-logs:
			same(f.value(found), expected)
		case <-f.ctx.Done():
			log.Fatalln("no log was seen")
		}
	}
	sub.Unsubscribe()
	ok("WatchLogs")
	for head := range heads {
		if head.Number.Cmp(receipt.BlockNumber) == 0 {
			same(head.Hash(), receipt.BlockHash)
			break
		}
	}
	following.Unsubscribe()
	ok("SubscribeNewHead")
}

func (f *flow) ask(result any, method string, params ...any) {
	check(f.client.Client().CallContext(f.ctx, result, method, params...))
}

// commit replaces the simulated backend's own methods by those of development chains:
// Commit, AdjustTime and Rollback.
func (f *flow) commit() {
	var answer any
	f.ask(&answer, "evm_setAutomine", false)
	before, holds := must(f.client.BlockNumber(f.ctx)), f.balance(nobody, nil)
	sent := []*types.Transaction{f.transfer(10), f.transfer(20)}
	same(f.balance(nobody, nil), holds)
	_, waits, err := f.client.TransactionByHash(f.ctx, sent[0].Hash())
	check(err)
	same(waits, true)
	f.ask(&answer, "evm_mine")
	same(must(f.client.BlockNumber(f.ctx)), before+1)
	for _, each := range sent {
		same(must(f.client.TransactionReceipt(f.ctx, each.Hash())).BlockNumber.Uint64(), before+1)
	}
	same(f.balance(nobody, nil), holds+30)
	ok("evm_mine commits")

	then := must(f.client.HeaderByNumber(f.ctx, nil)).Time
	f.ask(&answer, "evm_increaseTime", 86400)
	f.ask(&answer, "evm_mine")
	same(must(f.client.HeaderByNumber(f.ctx, nil)).Time >= then+86400, true)
	ok("evm_increaseTime")

	var id string
	f.ask(&id, "evm_snapshot")
	f.ask(&answer, "evm_setAutomine", true)
	f.wait(f.transfer(100))
	f.ask(&answer, "evm_revert", id)
	same(answer == true, true)
	same(f.balance(nobody, nil), holds+30)
	f.ask(&answer, "evm_setAutomine", true)
	f.wait(f.transfer(1))
	same(f.balance(nobody, nil), holds+31)
	ok("evm_snapshot and evm_revert")
}
