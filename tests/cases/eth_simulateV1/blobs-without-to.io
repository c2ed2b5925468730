// A blob transaction cannot create a contract.
>> {"jsonrpc":"2.0","id":1,"method":"eth_simulateV1","params":[{"blockStateCalls":[{"calls":[{"from":"0xc000000000000000000000000000000000000000","blobVersionedHashes":["0x0100000000000000000000000000000000000000000000000000000000000000"]}]}]},"latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"blob transaction of type create"}}
