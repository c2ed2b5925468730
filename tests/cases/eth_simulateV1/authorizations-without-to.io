// Nor can a transaction with authorizations.
>> {"jsonrpc":"2.0","id":1,"method":"eth_simulateV1","params":[{"blockStateCalls":[{"calls":[{"from":"0xc000000000000000000000000000000000000000","authorizationList":[{"chainId":"0x539","nonce":"0x0","yParity":"0x1","r":"0x639486e19f6cad095cef1a1cb8ea1833e0298b32fc141520b318930ecd9e3355","s":"0x6ab48bbc5a1f6efff55079f61b4f9404513ccf2a86a77d5717758ef523fb8177","address":"0xc100000000000000000000000000000000000000"}]}]}]},"latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"EIP-7702 transaction cannot be used to create contract"}}
