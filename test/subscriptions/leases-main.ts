// Acquires a lease from the server at the URL, and prints the outcome. A separate process, because Node
// reads additional certificate authorities only at its start.

import { openRole } from '../../src/platform/engines/open-engines.ts';

const [url = ''] = process.argv.slice(2);
await using leases = await openRole(url, 'leases');
const key = { subscription: 'sub:rig:access:v1', shard: 0 };
const lease = await leases.acquire(key, 'child', 60_000);
process.stdout.write(lease.kind);
