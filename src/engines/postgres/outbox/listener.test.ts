import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { fakeClock } from '../../../testing/fake-clock.ts';
import type { PostgresConnection } from '../connection/connection.ts';
import { createPostgresOutboxListener } from './listener.ts';

const pollMs = 3_600_000;
const { signal } = new AbortController();

/** A pool whose first connections break when they run the query that contains the given word. */
function startListener(
  faults: readonly { readonly word: string; readonly hasResponse: boolean }[],
) {
  const clock = fakeClock();
  const failures: unknown[] = [];
  const released: unknown[] = [];
  let checkedOut = 0;
  const connect = (give: (error: undefined, client: EventEmitter) => void): void => {
    const fault = faults[checkedOut];
    checkedOut += 1;
    const client = Object.assign(new EventEmitter(), {
      release: (error: unknown) => void released.push(error),
      async query(text: string) {
        if (fault === undefined || !text.includes(fault.word)) return;
        // Simulates a packet with the response and the termination: the error comes before the promise settles.
        client.emit('error', new Error('terminating connection'));
        if (!fault.hasResponse) throw new Error('terminating connection');
      },
    });
    give(undefined, client);
  };
  const listener = createPostgresOutboxListener(
    { pool: { options: { max: 10 }, connect } } as unknown as PostgresConnection,
    { lockClass: 1, channel: 'c', clock, onFailure: (error) => failures.push(error) },
  );
  return {
    clock,
    failures,
    released,
    listener,
    get checkedOut() {
      return checkedOut;
    },
  };
}

/** The fake time until the next `whenDue` resolves. */
async function msUntilDue({
  clock,
  listener,
}: Pick<ReturnType<typeof startListener>, 'clock' | 'listener'>): Promise<number> {
  const startMs = clock.now();
  let isDue = false;
  const due = listener.whenDue(pollMs, signal).then(() => (isDue = true));
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  while (!isDue && clock.now() < startMs + pollMs) await clock.advance(10);
  await due;
  return clock.now() - startMs;
}

for (const word of ['listen', 'lock']) {
  test(`a connection that breaks during ${word} is replaced before the next poll`, async () => {
    const fault = { word, hasResponse: false };
    const rig = startListener([fault, fault]);
    assert.equal(await msUntilDue(rig), 100);
    assert.equal(await msUntilDue(rig), 200);
    assert.equal(await msUntilDue(rig), 0);
    assert.deepEqual([rig.checkedOut, rig.failures.length, rig.released.length], [3, 2, 2]);
    await rig.listener[Symbol.asyncDispose]();
    assert.equal(rig.released.length, 3);
  });

  test(`a connection that breaks right after the response to ${word} is not used`, async () => {
    const rig = startListener([{ word, hasResponse: true }]);
    assert.equal(await msUntilDue(rig), 100);
    assert.equal(await msUntilDue(rig), 0);
    assert.deepEqual([rig.checkedOut, rig.released.length], [2, 1]);
    await rig.listener[Symbol.asyncDispose]();
  });
}
