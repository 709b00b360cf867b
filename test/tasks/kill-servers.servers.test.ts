// Kills workers and the server that keeps the jobs at random.

import { test } from 'node:test';
import { startNats } from '../../src/testing/servers/nats-server.ts';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { inRounds } from '../store/rig.ts';
import { killTaskWorkers, taskPlanOf } from './kill-workers.ts';

test('jobs in a Redis that is killed like its workers end once, and no finished step runs again', () =>
  inRounds(async (seed) => {
    await using server = await startRedis({ appendOnly: 'always' });
    const alsoFault = async (): Promise<void> => {
      await server.kill();
      await server.start();
    };
    await killTaskWorkers(taskPlanOf({ url: server.url, seed, alsoFault }));
  }));

test('jobs in a NATS that is killed like its workers end once, and no finished step runs again', () =>
  inRounds(async (seed) => {
    await using server = await startNats();
    const alsoFault = async (): Promise<void> => {
      await server.kill();
      await server.start();
    };
    await killTaskWorkers(taskPlanOf({ url: server.url, seed, alsoFault }));
  }));
