import { after, test } from 'node:test';
import { leaseStoreConformance } from '../../../testing/conformance/subscriptions/subscription-storage.ts';
import { sharedNats } from '../../../testing/servers/shared-servers.ts';
import { natsLeases } from './leases.ts';

const { url, prefix } = await sharedNats();
const options = { bucket: `${prefix}-leases` };
const [leases, second] = await Promise.all([natsLeases(url, options), natsLeases(url, options)]);
after(async () => {
  await leases[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
});

for (const { name, run } of leaseStoreConformance({
  open: async () => leases,
  second: async () => second,
})) {
  test(`leases in NATS: ${name}`, run);
}
