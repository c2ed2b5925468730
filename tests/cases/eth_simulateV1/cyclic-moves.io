// Precompiles cannot change places.
>> {"jsonrpc":"2.0","id":1,"method":"eth_simulateV1","params":[{"blockStateCalls":[{"calls":[],"stateOverrides":{"0x0000000000000000000000000000000000000001":{"movePrecompileToAddress":"0x0000000000000000000000000000000000000002"},"0x0000000000000000000000000000000000000002":{"movePrecompileToAddress":"0x0000000000000000000000000000000000000001"}}}]},"latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"account 0x0000000000000000000000000000000000000002 is already overridden"}}
