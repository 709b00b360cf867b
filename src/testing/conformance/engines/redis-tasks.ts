// Shared by the tests of Redis tasks.

import { randomUUID } from 'node:crypto';
import { eventually } from '../../assertions.ts';
import { hasCode } from '../../../foundation/error.ts';
import type { TasksFixture } from '../tasks/fixture.ts';
import type { TasksOptions } from '../../../tasks/create-tasks.ts';
import type { Tasks } from '../../../tasks/tasks.ts';
import { connectRedis } from '../../../engines/redis/connection/connection.ts';
import { openRedis } from '../../../engines/redis/index.ts';
import { ownedTasks } from '../../owned-tasks.ts';

interface Server {
  kill(): Promise<void>;
  start(): Promise<void>;
}

export function redisTasksFixture(
  target: string,
  { server, isOneDomain = true }: { readonly server?: Server; readonly isOneDomain?: boolean } = {},
): TasksFixture {
  return {
    capabilities: {
      durable: true,
      crossProcess: true,
      atomicSignals: isOneDomain,
      exactLimits: true,
      exactOrder: true,
      restart: server !== undefined,
    },
    async open(options) {
      const keyPrefix = `${randomUUID()}:`;
      const openTasks = async (more: TasksOptions) => {
        const { clock, observer, root } = more;
        return ownedTasks(await openRedis(target, { clock, observer, root, keyPrefix }), more);
      };
      const tasks = await openTasks(options);
      return {
        tasks,
        second: openTasks,
        async stream(subject) {
          await using redis = await openRedis(target, { keyPrefix });
          const messages = await Array.fromAsync(redis.bus.read(subject));
          return messages.map(({ id, payload }) => ({ id, payload }));
        },
        async deleteStream(subject) {
          await using connection = await connectRedis(target);
          const key = `${keyPrefix}${subject.replaceAll('.', ':')}`;
          await connection.ask((client) => client.del(key));
        },
        async damage(id, part) {
          await using connection = await connectRedis(target);
          const [type = '', suffix = ''] = id.split('.');
          const queue = `gbe:tasks:${type}:queue`;
          const base = `${keyPrefix}millrace.task:{${keyPrefix}${queue}}`;
          const key = `${base}:${part === 'payload' ? 'p' : 'j'}:${suffix}`;
          const text = (await connection.ask((client) => client.get(key))) ?? '';
          const lines = part === 'head' ? [''] : text.split('\n').slice(0, -1);
          const damaged = [...lines, '{"a'].join('\n');
          await connection.ask((client) => client.set(key, damaged));
        },
        ...(server === undefined ? {} : { outage: () => outage(server, tasks) }),
      };
    },
  };
}

async function outage(server: Server, tasks: Tasks): Promise<() => Promise<void>> {
  await server.kill();
  return async () => {
    await server.start();
    await eventually('the tasks are connected again', async () => {
      try {
        await tasks.counts();
        return true;
      } catch (error) {
        if (hasCode(error, 'TASKS_UNAVAILABLE')) return false;
        throw error;
      }
    });
  };
}
