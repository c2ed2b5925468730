// Blocks are asked for in their order.
>> {"jsonrpc":"2.0","id":1,"method":"eth_simulateV1","params":[{"blockStateCalls":[{"calls":[],"blockOverrides":{"number":"0xe"}},{"calls":[],"blockOverrides":{"number":"0xe"}}]},"latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-38020,"message":"block numbers must be in order: 14 <= 14"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_simulateV1","params":[{"blockStateCalls":[{"calls":[],"blockOverrides":{"time":"0xff"}},{"calls":[],"blockOverrides":{"time":"0xff"}}]},"latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-38021,"message":"block timestamps must be in order: 255 <= 255"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_simulateV1","params":[{"blockStateCalls":[{"calls":[],"blockOverrides":{"number":"0xc"}}]},"latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-38020,"message":"block numbers must be in order: 12 <= 12"}}
