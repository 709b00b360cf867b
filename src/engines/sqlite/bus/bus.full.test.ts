import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import type { Bus } from '../../../bus/bus.ts';
import { createBus } from '../../../bus/create-bus.ts';
import { busConformance } from '../../../testing/conformance/bus/bus.ts';
import { ownedRole } from '../../../testing/owned-role.ts';
import { openSqlite } from '../open-sqlite.ts';
import { sqliteBusEngine } from './bus.ts';
import { trimStepMax } from './trim.ts';
import {
  openSharedSqliteFile,
  type SharedSqliteFile,
} from '../../../testing/conformance/engines/sqlite-shared-file.ts';

/** Short, because some cases hold the write lock until a write times out. */
const busyTimeoutMs = 100;
const folder = mkdtempSync(join(tmpdir(), 'millrace-bus-'));

const closing = new AsyncDisposableStack();
closing.defer(() => rmSync(folder, { recursive: true, force: true }));
after(() => closing.disposeAsync());
let shared: SharedSqliteFile | undefined;

async function prepare(): Promise<{ readonly path: string; readonly bus: Bus }> {
  shared ??= closing.use(await openSharedSqliteFile(folder, busyTimeoutMs));
  shared.reset();
  const { path } = shared.file;
  return { path, bus: createBus(sqliteBusEngine(shared.file)) };
}

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
    const { path, bus } = await prepare();
    return {
      bus,
      second: async (options) =>
        ownedRole(await openSqlite(path, { ...options, busyTimeoutMs }), 'bus'),
      async inject(subject, data) {
        const database = new DatabaseSync(path, { timeout: 30_000 });
        const insert = 'insert into bus_messages (stream_id, stored_at_ms, data)';
        database.exec('begin immediate');
        database.prepare('insert or ignore into bus_streams (subject) values (?)').run(subject);
        database
          .prepare(`${insert} select id, ?, ? from bus_streams where subject = ?`)
          .run(Date.now(), data, subject);
        database.exec('commit');
        database.close();
      },
      async damageGroup(group) {
        const database = new DatabaseSync(path, { timeout: 30_000 });
        database.prepare(`update bus_groups set filters = '["g' where name = ?`).run(group);
        database.close();
      },
      async outage() {
        // A held write lock has the same effect as an unreachable broker.
        const database = new DatabaseSync(path, { timeout: 30_000 });
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

test('bus in SQLite: messages of other subjects cause no commit for a waiting group', async () => {
  const { path, bus } = await prepare();
  await using stack = new AsyncDisposableStack();
  stack.defer(() => bus[Symbol.asyncDispose]());
  const group = await bus.group({ group: 'waiting', subject: 'gbe.events.audit.change' });
  const waiting = group.fetch({ waitMs: 60_000 });
  for (let n = 0; n < 20; n += 1) {
    await bus.publish({ subject: 'gbe.events.system.health', payload: n });
  }
  const database = new DatabaseSync(path, { readOnly: true });
  const cursor = database.prepare("select cursor from bus_groups where name = 'waiting'");
  assert.equal(cursor.get()?.['cursor'], 0);
  await bus.publish({ subject: 'gbe.events.audit.change', payload: 'mine' });
  assert.deepEqual(
    (await waiting).map(({ payload }) => payload),
    ['mine'],
  );
  assert.equal(Number(cursor.get()?.['cursor']) > 0, true);
  database.close();
});

test('bus in SQLite: a long trim is cut into short commits, and messages in between stay', async () => {
  await prepare();
  const { file } = shared as SharedSqliteFile;
  const subject = 'gbe.events.system.health';
  const removedPerCommit: number[] = [];
  let publishing: Promise<unknown> = Promise.resolve();
  const call: typeof file.writer.call = async (request) => {
    const result = await file.writer.call(request);
    if (request.operation !== 'bus.trim') return result;
    removedPerCommit.push((result as { readonly removed: number }).removed);
    if (removedPerCommit.length === 1) publishing = bus.publish({ subject, payload: 'new' });
    await publishing;
    return result;
  };
  await using bus = createBus(sqliteBusEngine({ ...file, writer: { ...file.writer, call } }));
  const group = await bus.group({ group: 'slow', subject });
  const messages = Array.from({ length: 500 }, (_, payload) => ({ subject, payload }));
  for (let batch = 0; batch < 5; batch += 1) await bus.publishMany(messages);
  for (let fetched = 0; fetched < 2_400;) {
    const deliveries = await group.fetch({ limit: 100, waitMs: 0 });
    await group.ack(deliveries);
    fetched += deliveries.length;
  }
  assert.deepEqual(await bus.trim(subject, { lengthMax: 50 }), { removed: 2_400, heldBack: 50 });
  assert.deepEqual(removedPerCommit, [trimStepMax, trimStepMax, 400]);
  const left = await Array.fromAsync(bus.read(subject));
  assert.equal(left.length, 101);
  assert.equal(left.at(-1)?.payload, 'new');
});
