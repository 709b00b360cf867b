// Effects outside of the database, by two processes of which one is killed between the act and its
// confirmation.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { inTime, newEvent, streamName, until, type EngineName } from '../store/rig.ts';
import type { ClaimWorkerInput, ClaimWorkerMessage } from './claim-worker-main.ts';
import type { OpenedRig } from './kill-workers.ts';

type Act = Extract<ClaimWorkerMessage, { readonly kind: 'act' }>;

const events = 12;
const holdAt = 'e5';
const subscription = 'sub:rig:claims:v1';

export function claimCases(engine: EngineName, open: () => Promise<OpenedRig>): void {
  test(`an outside effect on ${engine} is had once, but for the one that died before its confirmation, which has the same key again`, async () => {
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
    await inTime('it owns the shard', first.message(says('owns')));
    await using second = start({ engine, url, worker: 'second', leaseMs: 3_000, subscription });
    await until('all have been acted on', () => actsOf(first).length === events);
    // All others are confirmed, though the checkpoint cannot pass the one that is held.
    await until('only one is left', () => inFlight(first) === 1);
    await first.kill('SIGKILL');
    // Its lease of the shard is so long that a slow machine does not lose it; it ends here instead.
    const { leases, tokens } = rig.store.subscriptions;
    const shard = { subscription, shard: 0 };
    await leases.release({ ...shard, token: await tokens.current(shard) });
    await leases.leave(subscription, 'first');
    await until('the other one acts for it', () => actsOf(second).length > 0);
    await until('nothing is left', () => inFlight(second) === 0);
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

function says(kind: ClaimWorkerMessage['kind']) {
  return (message: unknown): message is ClaimWorkerMessage =>
    (message as ClaimWorkerMessage).kind === kind;
}

/** As it said last. */
function inFlight(child: Child): number | undefined {
  const said = (child.messages as ClaimWorkerMessage[]).findLast(({ kind }) => kind === 'inFlight');
  return said?.kind === 'inFlight' ? said.count : undefined;
}
