// Node's HTTP module. An import of 'node:http' reads every export and so loads Node's fetch and WebSocket clients, which
// no server uses: 20 ms and 2 MiB of each start.

import process from 'node:process';

export const nodeHttp = process.getBuiltinModule('node:http');
