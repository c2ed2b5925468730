// A failure of the machine.
>> {"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0xc100000000000000000000000000000000000000","gas":"0x186a0"},"latest",{"0xc100000000000000000000000000000000000000":{"code":"0xfe"}}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"invalid opcode: INVALID"}}
