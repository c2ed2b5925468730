// A block that is not there, by number and by hash.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0xc000000000000000000000000000000000000000","0xd"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"header not found"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0xc000000000000000000000000000000000000000",{"blockHash":"0x0000000000000000000000000000000000000000000000000000000000000001"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"header for hash not found"}}
