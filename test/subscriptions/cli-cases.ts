// The subscription commands against a worker in another process.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DeadLetter } from '../../src/subscriptions/index.ts';
import type { Child } from '../../src/testing/child-process.ts';
import { runMillrace, type Outcome } from '../cli-store-terminal.ts';
import {
  createWorkspace,
  inTime,
  newEvent,
  streamName,
  until,
  type EngineName,
} from '../store/rig.ts';
import { says, startWorker, subscriptionName as name, type OpenedRig } from './kill-workers.ts';
import { planOf } from './plan.ts';
import type { WorkerMessage } from './worker-main.ts';

interface Scene {
  readonly rig: OpenedRig;
  readonly worker: Child;
  readonly append: (stream: number, events: Readonly<Record<string, boolean>>) => Promise<void>;
  readonly millrace: (...args: string[]) => Promise<Outcome>;
  readonly json: <T>(...args: string[]) => Promise<T[]>;
  readonly applied: () => Promise<string[]>;
  readonly stopPoison: () => Promise<void>;
}

export function cliCases(engine: EngineName, open: () => Promise<OpenedRig>): void {
  const inScene = (run: (scene: Scene) => Promise<void>) => async (): Promise<void> => {
    await using rig = await open();
    await using workspace = await createWorkspace();
    const cureFile = join(workspace.folder, 'cureFile');
    const plan = { ...planOf({ engine, url: rig.url, seed: 1 }), shards: 2, leaseMs: 30_000 };
    await using worker = startWorker(plan, 'worker', 1, { failuresPerMille: 0, cure: cureFile });
    await inTime('the worker owns both shards', worker.message(owns(2)));
    const millrace = (...args: string[]): Promise<Outcome> =>
      runMillrace(args, { env: { MILLRACE_STORE: rig.url, MILLRACE_USER: 'ada' } });
    await run({
      rig,
      worker,
      millrace,
      async append(stream, events) {
        const added = Object.entries(events).map(([id, poison]) =>
          newEvent(id, { payload: { poison } }),
        );
        await rig.store.append(streamName(stream), added);
      },
      async json<T>(...args: string[]) {
        const { code, stdout, stderr } = await millrace(...args, '--json');
        assert.equal(code, 0, stderr);
        const lines = stdout.split('\n').filter((line) => line !== '');
        return lines.map((line) => JSON.parse(line) as T);
      },
      applied: async () => (await rig.effects()).map(({ eventId }) => eventId),
      stopPoison: () => writeFile(cureFile, ''),
    });
  };

  test(
    `millrace dlq replays only the failed handler of a running subscription, in order, on ${engine}`,
    inScene(async (scene) => {
      const { rig, append, millrace, json, applied, stopPoison } = scene;
      await append(1, { a1: true, a2: false });
      await append(2, { b1: true });
      await append(3, { c1: false });
      const { deadLetters } = rig.subscriptions;
      await until('both events are dead letters', async () => (await deadLetters.count({})) === 2);
      const letters = await json<DeadLetter>('dlq', 'list');
      assert.deepEqual(letters.map(({ eventId }) => eventId).toSorted(), ['a1', 'b1']);
      const [first] = await json<DeadLetter>('dlq', 'list', '--limit', '1');
      const rest = await json<DeadLetter>('dlq', 'list', '--after', first?.id ?? '');
      assert.deepEqual(
        [first?.id, ...rest.map(({ id }) => id)],
        letters.map(({ id }) => id),
      );
      const listed = async (...filter: string[]): Promise<number> =>
        (await json('dlq', 'list', ...filter)).length;
      assert.equal(await listed('--subscription', name, '--type', 'item.created.v1'), 2);
      assert.equal(await listed('--subscription', 'sub:rig:other:v1'), 0);
      assert.equal(await listed('--tenant', 'other'), 0);
      assert.equal(await listed('--stream', streamName(2)), 1);
      assert.equal(await listed('--since', '1h'), 2);
      assert.equal(await listed('--since', '2999-01-01'), 0);
      assert.equal(await listed('--status', 'replayed'), 0);

      const a = letters.find(({ eventId }) => eventId === 'a1')?.id ?? '';
      const failed = await millrace('dlq', 'replay', a, '--wait', '--json');
      assert.deepEqual([failed.code, failed.stderr], [1, '']);
      assert.deepEqual(JSON.parse(failed.stdout), {
        requested: 1,
        replayed: 0,
        failed: 1,
        left: 0,
      });
      assert.equal((await millrace('dlq', 'note', a, 'asked the bank')).code, 0);
      await stopPoison();
      const replayed = await millrace('dlq', 'replay', a, '--wait');
      assert.deepEqual(replayed, { code: 0, stdout: 'replayed 1\n', stderr: '' });
      await until('the parked event is applied', async () => (await applied()).includes('a2'));
      assert.deepEqual(
        (await applied()).filter((id) => id.startsWith('a')),
        ['a1', 'a2'],
      );
      const shown = await millrace('dlq', 'show', a);
      assert.match(shown.stdout, /^status +replayed\n/m);
      assert.match(shown.stdout, /^by +ada\n/m);
      assert.match(shown.stdout, /^notes +asked the bank\n/m);
      assert.match(shown.stdout, /^attempts +2\n/m);

      const again = await millrace('dlq', 'replay', a);
      assert.equal(again.code, 1);
      assert.match(again.stderr, /^DEAD_LETTER_CLOSED: .* is already replayed/);
      assert.match((await millrace('dlq', 'show', 'unknown')).stderr, /^DEAD_LETTER_UNKNOWN: /);
      assert.match(
        (await millrace('dlq', 'list', '--after', 'unknown')).stderr,
        /^DEAD_LETTER_UNKNOWN: /,
      );
      for (const usage of [
        ['dlq', 'replay', '--all'],
        ['dlq', 'replay'],
        ['dlq', 'replay', a, '--all', '--yes'],
        ['dlq', 'replay', a, '--timeout', '5s'],
        ['dlq', 'discard', a],
        ['dlq', 'discard', '--tenant', 'core', '--reason', 'x'],
        ['dlq', 'list', '--status', 'open'],
        ['dlq', 'list', '--since', 'yesterday'],
      ]) {
        assert.equal((await millrace(...usage)).code, 2, usage.join(' '));
      }
      const all = await millrace('dlq', 'replay', '--all', '--yes', '--wait');
      assert.deepEqual([all.code, all.stdout], [0, 'replayed 1\n']);
      assert.deepEqual((await applied()).toSorted(), ['a1', 'a2', 'b1', 'c1']);
    }),
  );

  test(
    `millrace dlq discard releases the parked events on ${engine}`,
    inScene(async (scene) => {
      const { rig, append, millrace, json, applied } = scene;
      const { deadLetters } = rig.subscriptions;
      for (let stream = 0; stream < 4; stream += 1) {
        await append(stream, { [`p${stream}`]: true, [`q${stream}`]: false });
      }
      await until(
        'all four events are dead letters',
        async () => (await deadLetters.count({})) === 4,
      );
      const [one] = await json<DeadLetter>('dlq', 'list', '--stream', streamName(0));
      const first = await millrace('dlq', 'discard', one?.id ?? '', '--reason', 'a test');
      assert.deepEqual(first, { code: 0, stdout: 'discarded 1\n', stderr: '' });
      const [rest] = await json(
        'dlq',
        'discard',
        '--subscription',
        name,
        '--reason',
        'x',
        '--yes',
        '--by',
        'bob',
      );
      assert.deepEqual(rest, { discarded: 3 });
      await until('the parked events are applied', async () => (await applied()).length === 4);
      assert.deepEqual((await applied()).toSorted(), ['q0', 'q1', 'q2', 'q3']);
      const discarded = await json<DeadLetter>('dlq', 'list', '--status', 'discarded');
      assert.deepEqual(
        discarded.map((letter) => `${letter.discardedBy}: ${letter.discardReason}`).toSorted(),
        ['ada: a test', 'bob: x', 'bob: x', 'bob: x'],
      );
    }),
  );

  test(
    `millrace subscriptions pauses, resets and resumes a running subscription on ${engine}`,
    inScene(async (scene) => {
      const { rig, worker, append, millrace, json, applied } = scene;
      await append(1, { a1: false });
      await until('the first event is handled', async () => (await applied()).length === 1);
      const state = async (): Promise<unknown> => (await json('subscriptions', 'list'))[0];
      const running = { subscription: name, shards: 2, workers: 1, deadLetters: 0, waiting: 0 };
      assert.deepEqual(await state(), { ...running, state: 'running' });
      await until('the lag is zero', async () => {
        const [lag] = await json<{ behind: number; seconds: number }>('subscriptions', 'lag', name);
        return lag?.behind === 0 && lag.seconds === 0;
      });
      const reset = (to: string): Promise<Outcome> =>
        millrace('subscriptions', 'reset', name, '--to', to, '--yes');
      const rejected = await reset('start');
      assert.equal(rejected.code, 1);
      assert.match(rejected.stderr, /^SUBSCRIPTION_RUNNING: /);
      assert.equal((await millrace('subscriptions', 'reset', name, '--to', 'start')).code, 2);
      assert.equal((await reset('2026')).code, 2);

      const isIdle = worker.message(owns(0));
      assert.deepEqual(await millrace('subscriptions', 'pause', name), {
        code: 0,
        stdout: `paused ${name}\n`,
        stderr: '',
      });
      await inTime('the worker releases its shards', isIdle);
      await until('its leases are free', async () => {
        const [row] = await json<{ workers: number }>('subscriptions', 'list');
        return row?.workers === 0;
      });
      assert.deepEqual(await state(), { ...running, state: 'paused', workers: 0 });
      await append(1, { a2: false });
      const stored = await rig.store.readAll().toArray();
      const afterFirst = stored[0]?.position ?? '';
      assert.deepEqual((await reset('start')).code, 0);
      assert.equal(
        (await reset(new Date(Date.parse(stored[0]?.recordedAt ?? '')).toISOString())).stdout.slice(
          -17,
          -1,
        ),
        '0000000000000000',
      );
      assert.equal((await reset(afterFirst)).stdout, `reset ${name} to ${afterFirst}\n`);
      assert.equal(
        (await reset('2999-01-01T00:00:00Z')).stdout.slice(-17, -1),
        stored[1]?.position,
      );
      assert.equal((await reset('start')).code, 0);
      assert.deepEqual(await applied(), ['a1']);
      assert.equal((await millrace('subscriptions', 'resume', name)).code, 0);
      await until(
        'both events are handled, one of them twice',
        async () => (await applied()).length === 3,
      );
      assert.deepEqual(await applied(), ['a1', 'a1', 'a2']);
      const unknown = await millrace('subscriptions', 'pause', 'sub:rig:unknown:v1');
      assert.match(unknown.stderr, /^SUBSCRIPTION_UNKNOWN: /);
      assert.equal(unknown.code, 1);
    }),
  );
}

function owns(shards: number) {
  return (message: unknown): message is WorkerMessage =>
    says('owns')(message) && message.shards === shards;
}
