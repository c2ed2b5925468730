// Notifications need a connection that stays open, whatever is asked for; as in geth.
>> {"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"notifications not supported"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newBeads"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"notifications not supported"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"notifications not supported"}}
