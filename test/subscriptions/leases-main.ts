// Takes a lease from where the URL says, and tells its token: in a process of its own, because an
// authority can only be trusted from the start.

import { openLeases } from '../../src/platform/index.ts';

const [url = ''] = process.argv.slice(2);
await using leases = await openLeases(url);
const key = { subscription: 'sub:rig:access:v1', shard: 0 };
const lease = await leases.acquire(key, 'child', 60_000);
process.stdout.write(lease.kind);
