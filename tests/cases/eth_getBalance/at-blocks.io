// The balance that the first block sent, before and after it, by number, tag and hash.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x3535353535353535353535353535353535353535","0x0"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x0"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x3535353535353535353535353535353535353535","0x1"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x38d7ea4c68000"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x3535353535353535353535353535353535353535","latest"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x38d7ea4c6807b"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x3535353535353535353535353535353535353535","earliest"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x0"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x3535353535353535353535353535353535353535","safe"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x38d7ea4c6807b"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x3535353535353535353535353535353535353535","finalized"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x38d7ea4c6807b"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x3535353535353535353535353535353535353535","pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x38d7ea4c6807b"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x3535353535353535353535353535353535353535",{"blockHash":"0x3371aca3ffb4c407b45e3beda04e47f9ab6e21838c47dc6f954cff941bb4df59"}]}
<< {"jsonrpc":"2.0","id":1,"result":"0x38d7ea4c6807b"}
