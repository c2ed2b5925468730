// What geth refuses, with its code and words.
>> {"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{"topics":[[],[],[],[],[]]}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: exceed max topics"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{"toBlock":"pending"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"pending logs are not supported"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{"fromBlock":"safe"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid block range params"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{"fromBlock":"0x5","toBlock":"0x1"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid block range params"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{"blockHash":"0x0000000000000000000000000000000000000000000000000000000000000000","fromBlock":"0x1"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other"}}
