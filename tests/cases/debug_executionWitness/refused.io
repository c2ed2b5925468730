// what has no parent, and what is not there
>> {"jsonrpc":"2.0","id":1,"method":"debug_executionWitness","params":["0x0"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"genesis is not traceable"}}
>> {"jsonrpc":"2.0","id":1,"method":"debug_executionWitness","params":["0xff"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"block #255 not found"}}
