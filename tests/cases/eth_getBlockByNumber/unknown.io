// A number that is not there is null.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0xd",false]}
<< {"jsonrpc":"2.0","id":1,"result":null}
