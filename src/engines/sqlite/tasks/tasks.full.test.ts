import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import type { Bus } from '../../../bus/bus.ts';
import { tasksConformance } from '../../../testing/conformance/tasks/tasks.ts';
import { createBus } from '../../../bus/create-bus.ts';
import { createTasks } from '../../../tasks/create-tasks.ts';
import { ownedTasks } from '../../../testing/owned-tasks.ts';
import { sqliteBusEngine } from '../bus/bus.ts';
import { openSqlite } from '../open-sqlite.ts';
import {
  openSharedSqliteFile,
  type SharedSqliteFile,
} from '../../../testing/conformance/engines/sqlite-shared-file.ts';
import { sqliteTaskEngine } from './tasks.ts';

/** Short, because some cases hold the write lock until a write times out. */
const busyTimeoutMs = 200;
const folder = mkdtempSync(join(tmpdir(), 'millrace-tasks-'));
const closing = new AsyncDisposableStack();
closing.defer(() => rmSync(folder, { recursive: true, force: true }));
after(() => closing.disposeAsync());
let shared: SharedSqliteFile | undefined;

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
    shared ??= closing.use(await openSharedSqliteFile(folder, busyTimeoutMs));
    shared.reset();
    const { file } = shared;
    const { path } = file;
    const tasks = createTasks(sqliteTaskEngine(file, options), options);
    let bus: Bus | undefined;
    const openBus = (): Bus => (bus ??= createBus(sqliteBusEngine(file)));
    return {
      tasks,
      async second(secondOptions) {
        const { clock } = secondOptions;
        return ownedTasks(await openSqlite(path, { clock, busyTimeoutMs }), secondOptions);
      },
      async stream(subject) {
        const messages = await Array.fromAsync(openBus().read(subject));
        return messages.map(({ id, payload }) => ({ id, payload }));
      },
      async deleteStream(subject) {
        await openBus().deleteStream(subject, { evenUnacked: true });
      },
      async damage(id, part) {
        const database = new DatabaseSync(path);
        const column = part === 'head' ? 'labels' : part;
        database.prepare(`update tasks set ${column} = '{"a' where id = ?`).run(id);
        database.close();
      },
      async outage() {
        // A held write lock has the same effect as an unreachable engine.
        const database = new DatabaseSync(path, { timeout: 30_000 });
        database.exec('begin exclusive');
        return async () => {
          database.exec('rollback');
          database.close();
        };
      },
      async close() {
        await bus?.[Symbol.asyncDispose]();
      },
    };
  },
})) {
  test(`tasks in SQLite: ${name}`, { skip: skip ?? false }, run);
}
