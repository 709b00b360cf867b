import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError } from './error.ts';
import {
  examine,
  examineOver,
  isAtLeast,
  isBroken,
  latencyFinding,
  medianMs,
  skewFinding,
  unreachableRemedy,
  versionFinding,
} from './finding.ts';

test('a check that exceeds its time limit is reported as broken', async () => {
  const found = await examine('slow', () => new Promise(() => undefined), { timeoutMs: 10 });
  assert.deepEqual(
    found.map(({ check, level, detail }) => [check, level, detail]),
    [['slow', 'broken', 'no response within 10 ms']],
  );
});

test('an error of a check is reported as a finding with one line and a remedy', async () => {
  const limits = { timeoutMs: 1_000 };
  const failing = (error: Error) => {
    const work = async (): Promise<never> => {
      throw error;
    };
    return examine('it', work, limits, unreachableRemedy);
  };
  const [refused] = await failing(new Error('connect ECONNREFUSED 127.0.0.1:1\nmore'));
  assert.equal(refused?.detail, 'connect ECONNREFUSED 127.0.0.1:1');
  assert.match(refused?.remedy ?? '', /whether the server runs/);
  const [ours] = await failing(new MillraceError('DRIVER_MISSING', 'npm install pg'));
  assert.deepEqual(ours, {
    check: 'it',
    level: 'broken',
    detail: 'DRIVER_MISSING: npm install pg',
    remedy: undefined,
  });
  assert.ok(isBroken([ours]));
});

test('versions are compared number by number', () => {
  for (const [version, least, is] of [
    ['7.0.15', '6.2', true],
    ['6.2', '6.2', true],
    ['6.10', '6.2', true],
    ['6.0.16', '6.2', false],
    ['9', '13', false],
    ['2.10.1-beta', '2.10', true],
  ] as const) {
    assert.equal(isAtLeast(version, least), is, `${version} ${least}`);
  }
  assert.equal(versionFinding('PostgreSQL', '12', '13').level, 'broken');
});

test('a clock difference within the duration of the call is not reported', () => {
  const at = (serverMs: number) => skewFinding({ beforeMs: 10_000, serverMs, afterMs: 12_000 });
  assert.deepEqual([at(10_500).level, at(10_500).detail], ['ok', '0 ms']);
  assert.equal(at(12_900).detail, '900 ms');
  assert.match(at(14_000).detail, /2000 ms ahead/);
  assert.match(at(7_000).detail, /3000 ms behind/);
  assert.equal(at(7_000).level, 'warning');
});

test('a slow engine is reported with a remedy', async () => {
  const limit = { slowMs: 20, remedy: 'nearer' };
  assert.equal(latencyFinding('read', 19.6, limit).level, 'ok');
  assert.deepEqual(latencyFinding('read', 21, limit), {
    check: 'read',
    level: 'warning',
    detail: '21 ms',
    remedy: 'nearer',
  });
  assert.ok((await medianMs(async () => undefined)) >= 0);
});

test('a connection that opens too late is closed, too', async () => {
  const connecting = Promise.withResolvers<AsyncDisposable>();
  const closed = Promise.withResolvers<void>();
  const next = (): never => assert.fail('unreachable: the other checks are skipped');
  const found = await examineOver(
    () => connecting.promise,
    { reachable: async () => [], next },
    { timeoutMs: 10, remedyOf: unreachableRemedy },
  );
  assert.deepEqual([found.length, isBroken(found)], [1, true]);
  connecting.resolve({ [Symbol.asyncDispose]: async () => closed.resolve() });
  await closed.promise;
});
