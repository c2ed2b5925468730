// At most 256 blocks, those that fill gaps included.
>> {"jsonrpc":"2.0","id":1,"method":"eth_simulateV1","params":[{"blockStateCalls":[{"calls":[],"blockOverrides":{"number":"0x10d"}}]},"latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-38026,"message":"too many blocks"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_simulateV1","params":[{"blockStateCalls":[{"calls":[],"blockOverrides":{"number":"0xffffffffffffffff"}}]},"latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-38026,"message":"too many blocks"}}
