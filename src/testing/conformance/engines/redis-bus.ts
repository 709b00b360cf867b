// Shared by the tests of the Redis bus.

import { randomUUID } from 'node:crypto';
import { eventually } from '../../assertions.ts';
import type { BusFixture } from '../bus/bus.ts';
import type { Bus } from '../../../bus/bus.ts';
import type { BusOptions } from '../../../bus/create-bus.ts';
import { hasCode } from '../../../foundation/error.ts';
import { connectRedis } from '../../../engines/redis/connection/connection.ts';
import { openRedis } from '../../../engines/redis/index.ts';
import { ownedRole } from '../../owned-role.ts';

interface Server {
  kill(): Promise<void>;
  start(): Promise<void>;
}

export function redisBusFixture(target: string, server?: Server): BusFixture {
  return {
    capabilities: {
      durable: true,
      crossProcess: true,
      atomicBatch: false,
      fencedAcks: true,
      patternPositions: false,
      uncountedRelease: true,
      pendingList: true,
      streamBytes: true,
      restart: server !== undefined,
    },
    async open() {
      const keyPrefix = `${randomUUID()}:`;
      const openBus = async (more?: BusOptions) =>
        ownedRole(await openRedis(target, { ...more, keyPrefix }), 'bus');
      const bus = await openBus();
      return {
        bus,
        second: openBus,
        async inject(subject, data) {
          await using connection = await connectRedis(target);
          const key = `${keyPrefix}${subject.replaceAll('.', ':')}`;
          await connection.ask((client) => client.xadd(key, '*', 'data', Buffer.from(data)));
        },
        async damageGroup(group) {
          await using connection = await connectRedis(target);
          const [key = ''] = await connection.ask((client) => client.keys(`${keyPrefix}*}:groups`));
          await connection.ask((client) => client.hset(key, group, '1 {"filters":'));
        },
        ...(server === undefined ? {} : { outage: () => outage(server, bus) }),
      };
    },
  };
}

async function outage(server: Server, bus: Bus): Promise<() => Promise<void>> {
  await server.kill();
  return async () => {
    await server.start();
    await eventually('the bus is connected again', async () => {
      try {
        await bus.groups();
        return true;
      } catch (error) {
        if (hasCode(error, 'BUS_UNAVAILABLE')) return false;
        throw error;
      }
    });
  };
}
