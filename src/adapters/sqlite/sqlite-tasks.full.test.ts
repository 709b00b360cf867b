import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import type { Bus } from '../../bus/bus.ts';
import { tasksConformance } from '../../tasks/tasks.conformance.ts';
import { sqliteBus } from './sqlite-bus.ts';
import { sqliteTasks } from './sqlite-tasks.ts';

/** Short: the suite takes the write lock away. */
const busyTimeoutMs = 200;
const folder = mkdtempSync(join(tmpdir(), 'millrace-tasks-'));
after(() => rmSync(folder, { recursive: true, force: true }));

for (const { name, skip, run } of tasksConformance({
  capabilities: {
    durable: true,
    crossProcess: true,
    atomicSignals: true,
    exactLimits: true,
    exactOrder: true,
    restart: true,
  },
  async open(options) {
    const path = join(folder, `${randomUUID()}.db`);
    const tasks = await sqliteTasks(path, { ...options, busyTimeoutMs });
    // Most cases read no stream: the bus starts a thread only for those that do.
    let opening: Promise<Bus> | undefined;
    const openBus = (): Promise<Bus> => (opening ??= sqliteBus(path, { busyTimeoutMs }));
    return {
      tasks,
      second: (secondOptions) => sqliteTasks(path, { ...secondOptions, busyTimeoutMs }),
      async stream(subject) {
        const bus = await openBus();
        const messages = await Array.fromAsync(bus.read(subject));
        return messages.map(({ id, payload }) => ({ id, payload }));
      },
      async deleteStream(subject) {
        await (await openBus()).deleteStream(subject, { evenUnacked: true });
      },
      async outage() {
        // A connection that keeps the write lock has the same effect as an engine that is gone.
        const database = new DatabaseSync(path);
        database.exec('begin exclusive');
        return async () => {
          database.exec('rollback');
          database.close();
        };
      },
      async close() {
        await (await opening)?.[Symbol.asyncDispose]();
      },
    };
  },
})) {
  test(`tasks in SQLite: ${name}`, { skip: skip ?? false }, run);
}
