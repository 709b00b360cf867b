import { after, test } from 'node:test';
import { connect } from '@nats-io/transport-node';
import { eventually } from '../../../testing/assertions.ts';
import type { Bus } from '../../../bus/bus.ts';
import type { BusFixture } from '../../../testing/conformance/bus/bus.ts';
import { busConformance } from '../../../testing/conformance/bus/bus.ts';
import { onServer } from '../../../testing/support/bus/on-server.ts';
import { startNats } from '../../../testing/servers/nats-server.ts';
import { ownedRole } from '../../../testing/owned-role.ts';
import { openNats, type NatsOptions } from '../open-nats.ts';
import { natsBusCapabilities } from './bus.ts';

const server = await startNats();
const foreign = await connect({ servers: server.url });
after(async () => {
  await foreign.close();
  await server[Symbol.asyncDispose]();
});
let opened = 0;

const fixture: BusFixture = {
  capabilities: { ...natsBusCapabilities, restart: true },
  async open() {
    opened += 1;
    const prefix = `case${opened}`;
    const open = async (options: NatsOptions = {}): Promise<Bus> =>
      ownedRole(await openNats(server.url, { ...options, prefix }), 'bus');
    const bus = await open({ roots: ['gbe'] });
    // The first call creates the stream of the roots, which `inject` needs.
    await bus.groups();
    return {
      bus,
      second: open,
      async inject(subject, data) {
        await foreign.request(`${prefix}.${subject}`, data);
      },
      async outage() {
        // Stops the server cleanly: after a SIGKILL, messages whose acks were not on disk would be redelivered.
        await server.stop();
        return async () => {
          await server.start();
          await eventually('the bus is available', async () => {
            try {
              return (await bus.groups()).length >= 0;
            } catch {
              return false;
            }
          });
        };
      },
    };
  },
};

for (const { name, skip, run } of onServer(busConformance(fixture))) {
  test(`NATS: ${name}`, { skip: skip ?? false }, run);
}
