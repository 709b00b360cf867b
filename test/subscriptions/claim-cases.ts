// Two processes with effects outside the database; one is killed between an effect and its confirmation.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import {
  inTime,
  messageOfKind,
  newEvent,
  streamName,
  until,
  type EngineName,
} from '../store/rig.ts';
import type { ClaimWorkerInput, ClaimWorkerMessage } from './claim-worker-main.ts';
import type { OpenedRig } from './kill-workers.ts';

const says = messageOfKind<ClaimWorkerMessage>();
type Act = Extract<ClaimWorkerMessage, { readonly kind: 'act' }>;

const events = 12;
const holdAt = 'e5';
const subscription = 'sub:rig:claims:v1';

export function claimCases(engine: EngineName, open: () => Promise<OpenedRig>): void {
  test(`each external effect on ${engine} happens once, except one unconfirmed effect, which is repeated with the same key`, async () => {
    await using rig = await open();
    const { url } = rig;
    for (let at = 0; at < events; at += 1)
      await rig.store.append(streamName(at), [newEvent(`e${at}`)]);
    await using first = start({
      engine,
      url,
      worker: 'first',
      leaseMs: 600_000,
      subscription,
      holdAt,
    });
    await inTime('the first worker owns the shard', first.message(says('owns')));
    await using second = start({ engine, url, worker: 'second', leaseMs: 3_000, subscription });
    await until('all effects have happened', () => actsOf(first).length === events);
    // All other effects are confirmed, although the checkpoint cannot pass the held event.
    await until('only the held event is left', () => inFlight(first) === 1);
    await first.kill('SIGKILL');
    // The lease is so long that a slow machine keeps it, so the test releases it.
    const { leases, tokens } = rig.subscriptions;
    const shard = { subscription, shard: 0 };
    await leases.release({ ...shard, token: await tokens.current(shard) });
    await leases.leave(subscription, 'first');
    await until('the second worker repeats the effect', () => actsOf(second).length > 0);
    await until('the second worker has no event left', () => inFlight(second) === 0);
    const [again, ...more] = actsOf(second);
    assert.deepEqual(more, []);
    assert.equal(again?.eventId, holdAt);
    const acts = actsOf(first);
    assert.equal(new Set(acts.map(({ key }) => key)).size, events);
    assert.equal(again.key, acts.find(({ eventId }) => eventId === holdAt)?.key);
    assert.match(again.key, /^core\|rig\|claims\|e5$/);
  });
}

function start(input: ClaimWorkerInput): Child {
  return startChild(new URL('./claim-worker-main.ts', import.meta.url), { input });
}

function actsOf(child: Child): readonly Act[] {
  return (child.messages as ClaimWorkerMessage[]).filter(
    (each): each is Act => each.kind === 'act',
  );
}

/** The count that the worker reported last. */
function inFlight(child: Child): number | undefined {
  const last = (child.messages as ClaimWorkerMessage[]).findLast(({ kind }) => kind === 'inFlight');
  return last?.kind === 'inFlight' ? last.count : undefined;
}
