// Kills a reactor before its command, and between the effect of the command and the checkpoint: every
// order has one letter, although the command is sent again.

import assert from 'node:assert/strict';
import { createEnvelope } from '../../src/contracts/envelope.ts';
import { startReactor } from '../../src/reactors/index.ts';
import { startChild } from '../../src/testing/child-process.ts';
import { isText, openEngine, type EngineName } from '../store/rig.ts';
import { greetings, sendOver, tuning } from './greetings.ts';
import type { ReactorInput } from './reactor-main.ts';

const orders = ['o1', 'o2', 'o3', 'o4'];
const worker = new URL('reactor-main.ts', import.meta.url);

export async function killReactor(engine: EngineName, url: string): Promise<void> {
  await using db = await openEngine(engine, url, { connectionsMax: 4 });
  const { store } = db;
  for (const id of orders) {
    const aggregate = { bc: 'shop', type: 'order', id };
    const event = { type: 'order.placed.v1', payload: {} };
    await store.append(`shop.order.v1-core-${id}`, [
      createEnvelope(event, { tenant: 'core', aggregate }),
    ]);
  }
  const lettersOf = async (id: string): Promise<number> =>
    (await store.readStream(`shop.letter.v1-core-${id}`).toArray()).length;

  for (const [at, letters] of [
    ['before', 0],
    ['after', 1],
  ] as const) {
    const input: ReactorInput = { engine, url, order: 'o3', at };
    await using child = startChild(worker, { input });
    await child.message(isText('paused'));
    assert.equal(await child.kill('SIGKILL'), 'SIGKILL');
    assert.equal(await lettersOf('o3'), letters);
  }

  const requested: string[] = [];
  const send = sendOver(db);
  await using runner = await startReactor(db, greetings, {
    ...tuning,
    send: (request) => {
      requested.push(request.id);
      return send(request);
    },
  });
  await runner.whenCaughtUp(AbortSignal.timeout(60_000));
  assert.ok(requested.includes('o3'), 'the command was not sent again');
  for (const id of orders) assert.equal(await lettersOf(id), 1, id);
  assert.equal(await db.subscriptions.deadLetters.count({}), 0);
}
