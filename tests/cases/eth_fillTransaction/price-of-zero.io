// A gas price of zero.
>> {"jsonrpc":"2.0","id":1,"method":"eth_fillTransaction","params":[{"from":"0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f","to":"0x3535353535353535353535353535353535353535","gasPrice":"0x0"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"gasPrice must be non-zero after london fork"}}
