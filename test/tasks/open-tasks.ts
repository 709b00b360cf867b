// Opens the tasks of a test; each of its processes uses this function.

import { natsTasks } from '../../src/engines/nats/index.ts';
import { redisTasks } from '../../src/engines/redis/index.ts';
import { sqliteTasks } from '../../src/engines/sqlite/index.ts';
import { taskType, type Tasks } from '../../src/tasks/index.ts';

export type TasksAddress =
  | { readonly engine: 'sqlite'; readonly url: string }
  | { readonly engine: 'redis'; readonly url: string; readonly keyPrefix: string }
  | { readonly engine: 'nats'; readonly url: string; readonly prefix: string };

const backoff = { initialMs: 10, factor: 1, capMs: 10, jitterMs: 0 };
const types = [taskType('report-gen', { stepTimeoutMs: 120_000, retries: 3, backoff })];

export function openTasksAt(address: TasksAddress): Promise<Tasks> {
  const { url } = address;
  if (address.engine === 'redis') return redisTasks(url, { types, keyPrefix: address.keyPrefix });
  if (address.engine === 'nats') return natsTasks(url, { types, prefix: address.prefix });
  return sqliteTasks(url, { types });
}
