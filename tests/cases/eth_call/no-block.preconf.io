// No block is named.
>> {"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0xc100000000000000000000000000000000000000"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"missing value for required argument 1 (block)"}}
