// The sender has no funds for the gas.
>> {"jsonrpc":"2.0","id":1,"method":"eth_fillTransaction","params":[{"to":"0x3535353535353535353535353535353535353535","maxPriorityFeePerGas":"0x1"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"insufficient funds for transfer"}}
