// No block is named.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0xc000000000000000000000000000000000000000"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x0"}
