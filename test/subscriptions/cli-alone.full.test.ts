// `millrace subscriptions` and `millrace dlq` without a running subscription.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newLetter, acquireShard } from '../../src/testing/conformance/subscriptions/fixture.ts';
import { runMillrace } from '../cli-store-terminal.ts';
import { subscriptionName as name } from './kill-workers.ts';
import { openSqliteRig } from './open-sqlite-rig.ts';

test('an empty list is not an error, and every command has help with examples', async () => {
  await using rig = await openSqliteRig();
  const env = { MILLRACE_STORE: rig.url };
  for (const [command, message] of [
    ['subscriptions list', 'no subscriptions: none was ever started on this store\n'],
    ['dlq list', 'no dead letters\n'],
  ] as const) {
    const shown = await runMillrace(command.split(' '), { env });
    assert.deepEqual(shown, { code: 0, stdout: '', stderr: message });
    const json = await runMillrace([...command.split(' '), '--json'], { env });
    assert.deepEqual(json, { code: 0, stdout: '', stderr: '' });
  }
  const group = await runMillrace(['dlq', '--help']);
  assert.equal(group.code, 0);
  for (const verb of ['list', 'show', 'replay', 'discard', 'note']) {
    assert.match(group.stdout, new RegExp(`^  dlq ${verb} `, 'm'));
    const help = await runMillrace(['dlq', verb, '--help']);
    assert.match(help.stdout, new RegExp(`^Examples\\n  millrace dlq ${verb}\\b`, 'm'));
  }
});

test('a replay without a running handler warns, ends by timeout or Ctrl-C, and stays requested', async () => {
  await using rig = await openSqliteRig();
  const { subscriptions } = rig;
  const fence = await acquireShard(subscriptions, name);
  const { letter } = await subscriptions.deadLetters.add(fence, newLetter(fence, { parked: true }));
  await subscriptions.leases.release(fence);
  const env = { MILLRACE_STORE: rig.url };
  const replay = ['dlq', 'replay', letter.id, '--wait'];
  const inTime = await runMillrace([...replay, '--timeout', '1s', '--json'], { env });
  assert.equal(inTime.code, 1);
  assert.deepEqual(JSON.parse(inTime.stdout), { requested: 1, replayed: 0, failed: 0, left: 1 });
  assert.equal(inTime.stderr, `no process runs ${name}: the replay starts when one does\n`);

  const interrupted = await runMillrace(replay, { env, signal: AbortSignal.timeout(300) });
  assert.equal(interrupted.code, 130);
  const requested = await subscriptions.deadLetters.get(letter.id);
  assert.deepEqual([requested?.status, requested?.replayRequestedAt === null], ['pending', false]);

  const listed = await runMillrace(['dlq', 'list'], { env });
  assert.match(listed.stdout, /pending, replay requested {2}account\.credited\.v1/);
  const states = await runMillrace(['subscriptions', 'list'], { env });
  assert.match(states.stdout, /^subscription +state +shards +processes +waiting +dead letters\n/);
  assert.match(states.stdout, new RegExp(`^${name} +stopped +1 +0 +1 +1$`, 'm'));
  const lag = await runMillrace(['subscriptions', 'lag'], { env });
  assert.match(lag.stdout, new RegExp(`^${name} +0{16} +0 events +0\\.0 s$`, 'm'));
});
