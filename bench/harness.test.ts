import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { ours, type Benchmark, type Case, type Subject } from './benchmark.ts';
import { runBenchmark, type RunOptions } from './harness.ts';
import { resultsOf } from './results.ts';

const options: RunOptions = {
  quick: true,
  signal: new AbortController().signal,
  budgets: { measuringMs: 0, totalMs: 0, roundsMax: 1 },
};

function benchmarkOf(...cases: readonly Case[]): Benchmark {
  return { name: 'test', peers: [], url: import.meta.url, cases: () => cases };
}

function throughputOf(name: string, ...subjects: readonly Subject[]): Case {
  return { name, measure: 'throughput', subjects };
}

/** A million operations per second, by a clock that only work advances. */
const counting: Subject = { name: ours, setup: () => ({ run: (n) => void (nowMs += n / 1_000) }) };
let nowMs = 0;

beforeEach((context) => {
  if (!('mock' in context)) return;
  nowMs = 0;
  context.mock.method(performance, 'now', () => nowMs);
});

test('measures how many operations a subject does per second', async () => {
  const { measured, failures } = await runBenchmark(
    benchmarkOf(throughputOf('count', counting)),
    options,
  );
  assert.deepEqual(failures, []);
  const [result] = measured.flatMap(resultsOf);
  assert.equal(Math.round(result?.perSecond ?? 0), 1_000_000);
});

test('takes percentiles of the values that a latency case records', async () => {
  let ms = 0;
  const { measured } = await runBenchmark(
    benchmarkOf({
      name: 'wait',
      measure: 'latency',
      batch: 100,
      subjects: [
        {
          name: ours,
          setup: () => ({
            run: async (n, record) => {
              ms = 0;
              for (let done = 0; done < n; done += 1) record((ms += 1));
              // A run must take some time, or warming up would not end.
              nowMs += 1_000;
            },
          }),
        },
      ],
    }),
    options,
  );
  const [result] = measured.flatMap(resultsOf);
  assert.deepEqual([result?.p50Ms, result?.p99Ms], [50, 99]);
});

test('lets the subjects take turns, each of them first in one round', async () => {
  const turns: string[] = [];
  const named = (name: string): Subject => ({
    name,
    setup: () => ({
      prepare: () => void turns.push(name),
      run: () => undefined,
    }),
  });
  // A fixed number of rounds, because a busy machine might have time for one only.
  const turnsOf = throughputOf('turns', named('a'), named('b'));
  await runBenchmark(benchmarkOf({ ...turnsOf, batch: 1, roundsMin: 3 }), options);
  assert.equal(turns.slice(-6).join(''), 'abbaab');
});

test('runs the minimum number of rounds after one uncounted round, however long they take', async () => {
  const batches: number[] = [];
  const run = (n: number): unknown => batches.push(n);
  const { measured } = await runBenchmark(
    benchmarkOf({
      name: 'long',
      measure: 'throughput',
      batch: 20,
      roundsMin: 3,
      subjects: [
        { name: ours, setup: () => ({ run }) },
        { name: 'slow', batch: 5, setup: () => ({ run }) },
      ],
    }),
    options,
  );
  assert.deepEqual(batches, [20, 5, 20, 5, 5, 20, 20, 5]);
  assert.deepEqual(
    measured[0]?.subjects.map(({ batch, rounds }) => [batch, rounds.length]),
    [
      [undefined, 3],
      [5, 3],
    ],
  );
});

test('prepares each run outside the measured time', async () => {
  const { measured } = await runBenchmark(
    benchmarkOf({
      ...throughputOf('prepared', {
        name: ours,
        setup: () => ({ prepare: () => void (nowMs += 400), run: () => (nowMs += 20) }),
      }),
      batch: 1,
    }),
    options,
  );
  const [result] = measured.flatMap(resultsOf);
  assert.equal(Math.round(result?.perSecond ?? 0), 1_000 / 20);
});

test('continues with the next case after a failure, and closes the resources of the failed case', async () => {
  const closed: string[] = [];
  const opened: Subject = {
    name: ours,
    setup: () => ({ run: () => undefined, teardown: () => void closed.push(ours) }),
  };
  const broken: Subject = { name: 'broken', setup: () => Promise.reject(new Error('no server')) };
  const { measured, failures } = await runBenchmark(
    benchmarkOf(throughputOf('first', opened, broken), throughputOf('second', counting)),
    options,
  );
  assert.deepEqual(closed, [ours]);
  assert.deepEqual(
    failures.map((failure) => [failure.case, (failure.error as Error).message]),
    [['first', 'no server']],
  );
  assert.deepEqual(
    measured.map((rounds) => rounds.case),
    ['second'],
  );
});

test('fails a latency case that records nothing', async () => {
  const { failures } = await runBenchmark(
    benchmarkOf({ name: 'silent', measure: 'latency', subjects: [counting] }),
    options,
  );
  assert.match(String(failures[0]?.error), /records none/);
});

test('ends when it is interrupted, and closes in reverse order of opening', async () => {
  const interrupt = new AbortController();
  const closed: string[] = [];
  const endless: Subject = {
    name: ours,
    setup: () => ({
      run: () => interrupt.abort(new Error('interrupted')),
      teardown: () => void closed.push('subject'),
    }),
  };
  const running = runBenchmark(
    {
      ...benchmarkOf(),
      cases: ({ defer }) => {
        defer(() => void closed.push('server'));
        defer(() => void closed.push('client'));
        return [throughputOf('endless', endless), throughputOf('never', counting)];
      },
    },
    { ...options, signal: interrupt.signal },
  );
  await assert.rejects(running, /interrupted/);
  assert.deepEqual(closed, ['subject', 'client', 'server']);
});

test('runs only the chosen cases', async () => {
  const { measured } = await runBenchmark(
    benchmarkOf(throughputOf('one', counting), throughputOf('two', counting)),
    { ...options, only: 'tw' },
  );
  assert.deepEqual(
    measured.map((rounds) => rounds.case),
    ['two'],
  );
});

/** The child process of a memory case loads this again by its URL. */
const hoarding = `export const benchmark = { cases: () => [{
  name: 'hoard', measure: 'memory', batch: 64,
  subjects: [
    { name: 'millrace', setup: () => ({ run: () => 0 }) },
    { name: 'hoarder', setup: () => ({ run: (n) => Buffer.alloc(n * 2 ** 20, 1) }) },
    { name: 'server', setup: () => ({ run: () => 0, rssMiB: () => 5 }) },
  ] }] };`;

test('measures the memory of each subject in a separate process', async () => {
  const url = `data:text/javascript,${encodeURIComponent(hoarding)}`;
  const { benchmark } = (await import(url)) as { readonly benchmark: Benchmark };
  const { measured, failures } = await runBenchmark({ ...benchmark, url }, options);
  assert.deepEqual(failures, []);
  const [mine, hoarder, server] = measured.flatMap(resultsOf).map(({ rssMiB = 0 }) => rssMiB);
  // Far below the allocated size, because a kernel short of memory reclaims pages of an idle process.
  assert.ok((hoarder ?? 0) - (mine ?? 0) > 16, `${mine} MiB, ${hoarder} MiB`);
  assert.equal(server, 5);
});

test('reports why the memory of a subject could not be measured', async () => {
  const broken = `export const benchmark = { cases: () => [{ name: 'hoard', measure: 'memory',
    subjects: [{ name: 'millrace', setup: () => { throw new Error('no room'); } }] }] };`;
  const url = `data:text/javascript,${encodeURIComponent(broken)}`;
  const { benchmark } = (await import(url)) as { readonly benchmark: Benchmark };
  const { failures } = await runBenchmark({ ...benchmark, url }, options);
  assert.match(String(failures[0]?.error), /memory of 'millrace': Error: no room/);
});
