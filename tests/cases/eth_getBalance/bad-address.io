// An address that is none.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x12","latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: hex string has length 2, want 40 for an address"}}
