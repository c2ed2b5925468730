// a block without uncles; the reply is geth 1.17.2's
>> {"jsonrpc":"2.0","id":1,"method":"eth_getUncleCountByBlockNumber","params":["0x7"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x0"}
