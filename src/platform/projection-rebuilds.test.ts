import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aborted, systemClock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { projection, readModel } from '../projections/index.ts';
import { createProjectionRebuilds, type RebuildSources } from './projection-rebuilds.ts';

const name = 'sub:banking:accounts:v2';
const accounts = projection({
  name,
  readModel: readModel<{ readonly n: number }>({ bc: 'banking', aggregate: 'account', version: 2 }),
  on: { 'account.opened.v1': () => ({ n: 1 }) },
});

const sources = (build: RebuildSources['build'], check = async () => {}): RebuildSources => ({
  projections: [accounts],
  clock: systemClock,
  check,
  build,
});

/** Until it is cancelled. */
const forEver: RebuildSources['build'] = (_projection, { signal }) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(aborted(signal)));
  });

test('one of two concurrent rebuilds starts, and disposing cancels it', async () => {
  const rebuilds = createProjectionRebuilds(sources(forEver));
  const [first, second] = await Promise.allSettled([rebuilds.start(name), rebuilds.start(name)]);
  assert.ok(first.status === 'fulfilled' && second.status === 'rejected');
  assert.equal((second.reason as MillraceError).code, 'PROJECTION_BUSY');
  const ended = assert.rejects(first.value.ended, { code: 'ABORTED' });
  await rebuilds[Symbol.asyncDispose]();
  await ended;
  assert.equal(rebuilds.get(name)?.state, 'cancelled');
  assert.equal(await rebuilds.cancel(name), false);
});

test('a failure is reported with its code, and the rebuild can be repeated', async () => {
  const errors = [new MillraceError('LEASE_LOST', 'the lease was lost'), new Error('secret')];
  const rebuilds = createProjectionRebuilds(
    sources(async () => {
      throw errors.shift() ?? assert.fail();
    }),
  );
  for (const code of ['LEASE_LOST', 'INTERNAL']) {
    await assert.rejects((await rebuilds.start(name)).ended);
    const { state, error, endedAt } = rebuilds.get(name) ?? {};
    assert.deepEqual([state, error, endedAt !== undefined], ['failed', code, true]);
  }
});

test('a projection that cannot be rebuilt is not started, and one without code is unknown', async () => {
  const invalid = new MillraceError('PROJECTION_INVALID', 'the definition is invalid');
  const rebuilds = createProjectionRebuilds(sources(forEver, () => Promise.reject(invalid)));
  await assert.rejects(rebuilds.start(name), { code: 'PROJECTION_INVALID' });
  await assert.rejects(rebuilds.start(name), { code: 'PROJECTION_INVALID' });
  assert.equal(rebuilds.get(name), undefined);
  await assert.rejects(rebuilds.start('sub:banking:unknown:v1'), { code: 'PROJECTION_UNKNOWN' });
});
