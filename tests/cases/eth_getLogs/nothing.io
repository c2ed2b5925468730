// an address without logs
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"address":["0x1111111111111111111111111111111111111111"],"fromBlock":"0x0","toBlock":"0xc"}]}
<< {"jsonrpc":"2.0","id":1,"result":[]}
