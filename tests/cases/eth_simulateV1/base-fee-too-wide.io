// A header's base fee has 64 bits.
>> {"jsonrpc":"2.0","id":1,"method":"eth_simulateV1","params":[{"blockStateCalls":[{"calls":[],"blockOverrides":{"baseFeePerGas":"0x10000000000000000"}}]},"latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: $.blockStateCalls[0].blockOverrides.baseFeePerGas: hex number > 64 bits"}}
