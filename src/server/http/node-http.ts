// Node's HTTP module. An import of 'node:http' also loads Node's fetch and WebSocket clients, because it reads every
// export: 90 internal modules and 15 MiB that no server uses.

import process from 'node:process';

export const nodeHttp = process.getBuiltinModule('node:http');
