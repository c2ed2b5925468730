// No block before Berlin holds a transaction with an access list.
>> {"jsonrpc":"2.0","id":1,"method":"eth_simulateV1","params":[{"blockStateCalls":[{"calls":[{"from":"0xc000000000000000000000000000000000000000","to":"0xc100000000000000000000000000000000000000","accessList":[{"address":"0xc100000000000000000000000000000000000000","storageKeys":[]}]}]}]},"0x1"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"err: Eip2930 is not supported (supplied gas 30000000)"}}
