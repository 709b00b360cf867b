// Opens the tasks of a test; each of its processes uses this function.

import { openNats } from '../../src/engines/nats/index.ts';
import { openRedis } from '../../src/engines/redis/index.ts';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { taskType, type Tasks } from '../../src/tasks/index.ts';
import { ownedTasks, type TaskHandle } from '../../src/testing/owned-tasks.ts';

export type TasksAddress =
  | { readonly engine: 'sqlite'; readonly url: string }
  | { readonly engine: 'redis'; readonly url: string; readonly keyPrefix: string }
  | { readonly engine: 'nats'; readonly url: string; readonly prefix: string };

const backoff = { initialMs: 10, factor: 1, capMs: 10, jitterMs: 0 };
const types = [taskType('report-gen', { stepTimeoutMs: 120_000, retries: 3, backoff })];

export async function openTasksAt(address: TasksAddress): Promise<Tasks> {
  return ownedTasks(await openHandle(address), { types });
}

function openHandle(address: TasksAddress): Promise<TaskHandle> {
  const { url } = address;
  if (address.engine === 'redis') return openRedis(url, { keyPrefix: address.keyPrefix });
  if (address.engine === 'nats') return openNats(url, { prefix: address.prefix });
  return openSqlite(url);
}
