package main

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"math/big"
	"os"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
)

// given is a client and a funded account.
type given struct {
	ctx    context.Context
	client *ethclient.Client
	key    *ecdsa.PrivateKey
	us     common.Address
	signer types.Signer
	sealed bool // nothing above `latest` is read
}

var (
	token     = readToken()
	transfers = crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))
)

type contract struct {
	Code     hexutil.Bytes `json:"code"`
	InitCode hexutil.Bytes `json:"initCode"`
}

func readToken() (read contract) {
	check(json.Unmarshal(must(os.ReadFile("token.json")), &read))
	return read
}

// call is the data of a transfer of units of the token.
func call(to common.Address, value int64) []byte {
	data := crypto.Keccak256([]byte("transfer(address,uint256)"))[:4]
	data = append(data, common.LeftPadBytes(to[:], 32)...)
	return append(data, common.LeftPadBytes(big.NewInt(value).Bytes(), 32)...)
}

func (g *given) sign(to *common.Address, value int64, data []byte) *types.Transaction {
	nonce := must(g.client.PendingNonceAt(g.ctx, g.us))
	tip := must(g.client.SuggestGasTipCap(g.ctx))
	head := must(g.client.HeaderByNumber(g.ctx, nil))
	limit := new(big.Int).Add(tip, new(big.Int).Mul(head.BaseFee, big.NewInt(2)))
	return must(types.SignNewTx(g.key, g.signer, &types.DynamicFeeTx{
		ChainID: g.signer.ChainID(), Nonce: nonce, GasTipCap: tip, GasFeeCap: limit,
		Gas: 1_000_000, To: to, Value: big.NewInt(value), Data: data,
	}))
}

// send sends a transaction and returns its receipt.
func (g *given) send(to *common.Address, value int64, data []byte) *types.Receipt {
	signed := g.sign(to, value, data)
	check(g.client.SendTransaction(g.ctx, signed))
	return g.receipt(signed.Hash())
}

func (g *given) receipt(hash common.Hash) *types.Receipt {
	return until(func() *types.Receipt {
		found, err := g.client.TransactionReceipt(g.ctx, hash)
		if err != nil && err != ethereum.NotFound {
			check(err)
		}
		return found
	})
}

// deploy deploys a token, whose deployer has a thousand units.
func (g *given) deploy() common.Address {
	return g.send(nil, 0, token.InitCode).ContractAddress
}

func (g *given) transfer(address, to common.Address, value int64) *types.Receipt {
	return g.send(&address, 0, call(to, value))
}

// seal waits until the block of a receipt is sealed, and returns the new receipt.
func (g *given) seal(receipt *types.Receipt) *types.Receipt {
	until(func() *uint64 {
		number := must(g.client.BlockNumber(g.ctx))
		if number < receipt.BlockNumber.Uint64() {
			return nil
		}
		return &number
	})
	return g.receipt(receipt.TxHash)
}

// top is the newest block that is read.
func (g *given) top() *big.Int {
	if g.sealed {
		return nil
	}
	return big.NewInt(int64(rpc.PendingBlockNumber))
}

func valuesOf(found []types.Log) []string {
	values := []*big.Int{}
	for _, each := range found {
		values = append(values, new(big.Int).SetBytes(each.Data))
	}
	return texts(values)
}
