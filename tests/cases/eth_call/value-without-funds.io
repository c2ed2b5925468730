// The sender needs the value it sends.
>> {"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"from":"0xc000000000000000000000000000000000000000","to":"0xc100000000000000000000000000000000000000","value":"0x1"},"latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"err: insufficient funds for gas * price + value: address 0xC000000000000000000000000000000000000000 have 0 want 1 (supplied gas 50000000)"}}
