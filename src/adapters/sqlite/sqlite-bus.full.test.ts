import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import type { Bus } from '../../bus/bus.ts';
import { busConformance } from '../../bus/bus.conformance.ts';
import { sqliteBus } from './sqlite-bus.ts';

/** Short: the suite takes the write lock away. */
const busyTimeoutMs = 100;
const folder = mkdtempSync(join(tmpdir(), 'millrace-bus-'));

/** One ahead: a case does not wait for its thread to start. */
async function prepare(): Promise<{ readonly path: string; readonly bus: Bus }> {
  const path = join(folder, `${randomUUID()}.db`);
  return { path, bus: await sqliteBus(path, { busyTimeoutMs }) };
}
let coming = prepare();
after(async () => {
  await (await coming).bus[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

for (const { name, skip, run } of busConformance({
  capabilities: {
    durable: true,
    crossProcess: true,
    atomicBatch: true,
    fencedAcks: true,
    patternPositions: true,
    uncountedRelease: true,
    pendingList: true,
    streamBytes: true,
    restart: true,
  },
  async open() {
    const { path, bus } = await coming;
    coming = prepare();
    return {
      bus,
      second: (secondOptions) => sqliteBus(path, { ...secondOptions, busyTimeoutMs }),
      async inject(subject, data) {
        const database = new DatabaseSync(path);
        const insert = 'insert into bus_messages (stream_id, stored_at_ms, data)';
        database.exec('begin immediate');
        database.prepare('insert or ignore into bus_streams (subject) values (?)').run(subject);
        database
          .prepare(`${insert} select id, ?, ? from bus_streams where subject = ?`)
          .run(Date.now(), data, subject);
        database.exec('commit');
        database.close();
      },
      async outage() {
        // Somebody who keeps the write lock is as good as a broker that is gone.
        const database = new DatabaseSync(path);
        database.exec('begin exclusive');
        return async () => {
          database.exec('rollback');
          database.close();
        };
      },
    };
  },
})) {
  test(`bus in SQLite: ${name}`, { skip: skip ?? false }, run);
}
