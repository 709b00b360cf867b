// Node's HTTP module for servers and clients. Importing `node:http` evaluates all of its exports, and the one for WebSocket
// loads undici: 40 ms of CPU at each start.

export const http = process.getBuiltinModule('node:http');
