// The tip is above the fee cap.
>> {"jsonrpc":"2.0","id":1,"method":"eth_fillTransaction","params":[{"from":"0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f","to":"0x3535353535353535353535353535353535353535","maxPriorityFeePerGas":"0x2","maxFeePerGas":"0x1"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"maxFeePerGas (0x1) < maxPriorityFeePerGas (0x2)"}}
