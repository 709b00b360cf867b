// `millrace stream`, `scavenge` and `forget`.

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { openRole } from '../src/platform/engines/open-engines.ts';
import type { RecordedEvent } from '../src/store/recorded-event.ts';
import {
  currencyStream,
  eventsOf,
  jsonOf,
  renamed,
  runMillrace,
  useWorkspace,
} from './cli-store-terminal.ts';

const usd = currencyStream('USD');

describe('millrace stream append', () => {
  const home = useWorkspace();
  test('completes the envelope from the name of the stream', async () => {
    const outcome = await runMillrace(
      [
        ...`stream append ${usd} --type currency.created.v1 --correlation c-1`.split(' '),
        ...'--causation p-1 --user ada --header source=cli --header a=b=c'.split(' '),
        ...'--idempotency-key k-1 --event-id e-1 --data'.split(' '),
        '{"name": "Dollar"}',
      ],
      { cwd: home.folder() },
    );
    assert.deepEqual(
      [outcome.code, outcome.stdout],
      [0, `appended currency.created.v1 at revision 0 of ${usd}\n`],
    );
    const [event] = await home.contentOfFile('.millrace/events.db');
    const { occurredAt, ...rest } = event as RecordedEvent;
    assert.ok(Date.parse(occurredAt) > 0);
    assert.deepEqual(rest, {
      type: 'currency.created.v1',
      eventId: 'e-1',
      correlationId: 'c-1',
      causationId: 'p-1',
      idempotencyKey: 'k-1',
      tenant: 'core',
      aggregate: { bc: 'banking', type: 'currency', id: 'USD' },
      user: { id: 'ada' },
      headers: { source: 'cli', a: 'b=c' },
      payload: { name: 'Dollar' },
      stream: usd,
      revision: 0,
    });
  });

  test('reads the payload from stdin, and prints JSON for scripts', async () => {
    const line = `stream append ${usd} --type currency.created.v1 --data - --event-id e-1 --json`;
    const stdin = '{"name":"Dóllar"}';
    const first = jsonOf(await home.millrace(line, { stdin }));
    const result = { stream: usd, eventId: 'e-1', revision: 0, position: '0000000000000001' };
    assert.deepEqual(first, { ...result, isDuplicate: false });
    assert.deepEqual(jsonOf(await home.millrace(line, { stdin })), {
      ...result,
      isDuplicate: true,
    });
    const { stdout } = await home.millrace(`stream read ${usd} --json`);
    assert.deepEqual(eventsOf(stdout)[0]?.payload, { name: 'Dóllar' });
    assert.match((await home.millrace(line, { stdin: '{' })).stderr, /--data is not JSON/);
  });

  test('keeps to the expected revision', async () => {
    const line = `stream append ${usd} --type currency.created.v1 --data 1`;
    assert.equal((await home.millrace(`${line} --expected none`)).code, 0);
    assert.equal((await home.millrace(`${line} --expected 0`)).code, 0);
    assert.equal((await home.millrace(`${line} --expected exists`)).code, 0);
    assert.equal((await home.millrace(`${line} --expected any`)).code, 0);
    const { code, stderr } = await home.millrace(`${line} --expected 0`);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^VERSION_CONFLICT: .* was expected at 0, but is at 3\n {2}Read the stream/,
    );
  });

  test('needs --tenant for a tenant with a hyphen, and rejects a wrong one', async () => {
    const stream = 'banking.currency.v1-demo-za-USD';
    const line = `stream append ${stream} --type currency.created.v1 --data 1`;
    assert.equal((await home.millrace(`${line} --tenant demo-za`)).code, 0);
    const { stdout } = await home.millrace(`stream read ${stream} --json`);
    assert.deepEqual(
      eventsOf(stdout).map(({ tenant, aggregate }) => [tenant, aggregate.id]),
      [['demo-za', 'USD']],
    );
    assert.match((await home.millrace(`${line} --tenant core`)).stderr, /^TENANT_MISMATCH: /);
    assert.match(
      (await home.millrace('stream append usd --type a.b.v1 --data 1')).stderr,
      /^NAME_INVALID: /,
    );
    assert.match(
      (await home.millrace(`stream append ${usd} --type Renamed --data 1`)).stderr,
      /^ENVELOPE_INVALID: .*\/type must be/,
    );
  });
});

describe('millrace stream read', () => {
  const home = useWorkspace();
  beforeEach(() =>
    home.fillDefault((store) =>
      store.append(
        usd,
        ['a', 'b', 'c', 'd'].map((name) => renamed('USD', name)),
      ),
    ),
  );

  test('shows a line per event to people, the whole events to scripts', async () => {
    const { code, stdout, stderr } = await home.millrace(`stream read ${usd}`);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /^0 {2}\d{4}-\S+Z {2}currency\.renamed\.v1 {2}\{"name":"a"\}\n1 {2}/);
    await using store = await openRole(`sqlite:${home.at('.millrace/events.db')}`, 'store');
    const events = await store.readStream(usd).toArray();
    assert.deepEqual(eventsOf((await home.millrace(`stream read ${usd} --json`)).stdout), events);
  });

  test('applies --from, --limit and --backwards', async () => {
    const revisions = async (flags: string): Promise<number[]> =>
      eventsOf((await home.millrace(`stream read ${usd} --json ${flags}`)).stdout).map(
        ({ revision }) => revision,
      );
    assert.deepEqual(await revisions('--from 2'), [2, 3]);
    assert.deepEqual(await revisions('--limit 2'), [0, 1]);
    assert.deepEqual(await revisions('--backwards'), [3, 2, 1, 0]);
    assert.deepEqual(await revisions('--backwards --from 2 --limit 2'), [2, 1]);
  });

  test('reports an empty stream, and rejects one with a tombstone', async () => {
    const none = await home.millrace('stream read no-such');
    assert.deepEqual(none, { code: 0, stdout: '', stderr: "no events in 'no-such'\n" });
    assert.deepEqual(await home.millrace('stream read no-such --json'), { ...none, stderr: '' });
    await home.fillDefault((store) => store.tombstoneStream(usd));
    const { code, stderr } = await home.millrace(`stream read ${usd}`);
    assert.equal(code, 1);
    assert.match(stderr, /^STREAM_DELETED: /);
  });

  test('replaces control characters in events', async () => {
    await home.fillDefault((store) => store.append(usd, [renamed('USD', '\u001b[2J\u009b')]));
    const { stdout } = await home.millrace(`stream read ${usd} --from 4`, { isTTY: false });
    // oxlint-disable-next-line no-control-regex -- it matches control characters on purpose
    assert.doesNotMatch(stdout.trimEnd(), /[\u0000-\u001f\u007f-\u009f]/);
  });
});

describe('millrace stream tail', () => {
  const home = useWorkspace();
  test('shows existing and new events until it is stopped', async () => {
    await home.fillDefault((store) => store.append(usd, [renamed('USD', 'before')]));
    const stop = new AbortController();
    const seen: string[] = [];
    await using store = await openRole(`sqlite:${home.at('.millrace/events.db')}`, 'store');
    const { code, stderr } = await home.millrace(`stream tail ${usd} --from-start --json`, {
      signal: stop.signal,
      onStdout: (text) => {
        for (const { payload } of eventsOf(text)) seen.push((payload as { name: string }).name);
        if (seen.length === 1) void store.append(usd, [renamed('USD', 'now')]);
        if (seen.length === 2) stop.abort();
      },
    });
    assert.deepEqual([code, stderr, seen], [0, '', ['before', 'now']]);
  });

  test('shows all streams by category, type and tenant, and ends at its limit', async () => {
    const other = 'banking.account.v1-demo-1';
    await home.fillDefault(async (store) => {
      await store.append(usd, [
        renamed('USD', 'a'),
        renamed('USD', 'b', { type: 'currency.retired.v1' }),
      ]);
      await store.append(other, [renamed('1', 'c', { tenant: 'demo' })]);
    });
    const shown = async (flags: string, limit: number): Promise<unknown[]> => {
      const line = `stream tail --from-start --json --limit ${limit} ${flags}`;
      const { code, stdout } = await home.millrace(line.trimEnd());
      assert.equal(code, 0);
      return eventsOf(stdout).map(({ payload }) => (payload as { name: string }).name);
    };
    assert.deepEqual(await shown('', 2), ['a', 'b']);
    assert.deepEqual(await shown('--category banking.account.v1', 1), ['c']);
    assert.deepEqual(await shown('--tenant demo', 1), ['c']);
    assert.deepEqual(await shown('--type-prefix currency.ret', 1), ['b']);
    assert.deepEqual(await shown('--type currency.renamed.v1', 2), ['a', 'c']);
    assert.deepEqual(await shown('--stream-prefix banking.acc', 1), ['c']);
  });

  test('shows on a terminal that it waits, and the stream of each event', async () => {
    await home.fillDefault((store) => store.append(usd, [renamed('USD', 'a')]));
    const stop = new AbortController();
    const { stdout, stderr } = await home.millrace('stream tail --from-start', {
      signal: stop.signal,
      isTTY: true,
      onStdout: () => setImmediate(() => stop.abort()),
    });
    assert.ok(stdout.includes(`\u001b[1m${usd} 0\u001b[22m`));
    assert.match(stderr, /waiting for events; press Ctrl-C to stop/);
  });
});

describe('millrace stream info, metadata, delete and tombstone', () => {
  const home = useWorkspace();
  test('commands on an unknown stream report it', async () => {
    await home.millrace('migrate');
    for (const line of [
      `stream info ${usd}`,
      `stream metadata ${usd}`,
      `stream delete ${usd}`,
      `stream tombstone ${usd} --yes`,
    ]) {
      assert.deepEqual(
        await home.millrace(line),
        { code: 1, stdout: '', stderr: `unknown stream '${usd}'\n` },
        line,
      );
      assert.deepEqual(await home.millrace(`${line} --json`), {
        code: 1,
        stdout: 'null\n',
        stderr: '',
      });
    }
  });

  test('show and change how long events are kept, each setting by itself', async () => {
    await home.fillDefault((store) =>
      store.append(
        usd,
        ['a', 'b', 'c'].map((name) => renamed('USD', name)),
      ),
    );
    assert.equal(
      (await home.millrace(`stream metadata ${usd}`)).stdout,
      'no retention limits: all events are kept\n',
    );
    await home.fillDefault((store) => store.setStreamMetadata(usd, { custom: { owner: 'ada' } }));
    const changed = jsonOf(
      await home.millrace(
        `stream metadata ${usd} --max-count 2 --max-age 2d --truncate-before 1 --json`,
      ),
    );
    const metadata = {
      custom: { owner: 'ada' },
      maxCount: 2,
      maxAgeSeconds: 172_800,
      truncateBefore: 1,
    };
    assert.deepEqual(changed, { stream: usd, metadata });
    const info = { stream: usd, revision: 2, deleted: 'no', metadata };
    assert.deepEqual(jsonOf(await home.millrace(`stream info ${usd} --json`)), info);
    const shown = await home.millrace(`stream info ${usd}`);
    assert.match(shown.stdout, /^revision +2\nstate +live\nmax-count +2\nmax-age +172800 s$/m);
    assert.match(
      (await home.millrace(`stream metadata ${usd} --max-age none`)).stdout,
      /^max-count +2\n/,
    );
    const { maxAgeSeconds: _, ...rest } = metadata;
    assert.deepEqual(jsonOf(await home.millrace(`stream metadata ${usd} --json`)), {
      stream: usd,
      metadata: rest,
    });
    const visible = eventsOf((await home.millrace(`stream read ${usd} --json`)).stdout);
    assert.deepEqual(
      visible.map(({ revision }) => revision),
      [1, 2],
    );
  });

  test('a deletion hides everything until the next append, and metadata does not undo it', async () => {
    await home.fillDefault((store) => store.append(usd, [renamed('USD', 'a')]));
    const wrong = await home.millrace(`stream delete ${usd} --expected 7`);
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /^VERSION_CONFLICT: /);
    const deleted = jsonOf(await home.millrace(`stream delete ${usd} --expected 0 --json`));
    assert.deepEqual(deleted, { stream: usd, deleted: 'soft' });
    assert.equal((await home.millrace(`stream read ${usd} --json`)).stdout, '');
    assert.match((await home.millrace(`stream info ${usd}`)).stdout, /^state +deleted$/m);
    const rejected = await home.millrace(`stream metadata ${usd} --max-count 5`);
    assert.equal(rejected.code, 1);
    assert.match(rejected.stderr, /^STREAM_DELETED: /);
    await home.millrace(`stream append ${usd} --type currency.created.v1 --data 1`);
    const back = eventsOf((await home.millrace(`stream read ${usd} --json`)).stdout);
    assert.deepEqual(
      back.map(({ revision }) => revision),
      [1],
    );
    assert.match((await home.millrace(`stream delete ${usd}`)).stdout, /^deleted banking/);
  });

  test('a tombstone deletes the stream permanently', async () => {
    await home.fillDefault((store) => store.append(usd, [renamed('USD', 'a')]));
    assert.deepEqual(jsonOf(await home.millrace(`stream tombstone ${usd} --yes --json`)), {
      stream: usd,
      deleted: 'tombstone',
    });
    assert.match(
      (await home.millrace(`stream info ${usd}`)).stdout,
      /^state +permanently deleted$/m,
    );
    const append = await home.millrace(`stream append ${usd} --type currency.created.v1 --data 1`);
    assert.match(append.stderr, /^STREAM_DELETED: /);
    assert.match((await home.millrace(`stream delete ${usd}`)).stderr, /^STREAM_DELETED: /);
    await home.fillDefault((store) => store.append(currencyStream('EUR'), [renamed('EUR', 'a')]));
    const again = await home.millrace(
      `stream tombstone ${currencyStream('EUR')} --yes --expected 0`,
    );
    assert.match(again.stdout, /^permanently deleted banking/);
  });
});

describe('millrace scavenge and forget', () => {
  const home = useWorkspace();
  test('scavenge removes the events that retention hides', async () => {
    await home.fillDefault(async (store) => {
      await store.append(
        usd,
        ['a', 'b', 'c'].map((name) => renamed('USD', name)),
      );
      await store.setStreamMetadata(usd, { maxCount: 1 });
    });
    const { code, stdout } = await home.millrace('scavenge');
    assert.deepEqual([code, stdout], [0, 'removed 2 events from 1 streams with retention\n']);
    assert.deepEqual(jsonOf(await home.millrace('scavenge --json')), {
      streamsDone: 1,
      streamsTotal: 1,
      eventsRemoved: 0,
    });
  });

  test('a stopped scavenge ends with 130', async () => {
    await home.fillDefault(async (store) => {
      await store.append(usd, [renamed('USD', 'a')]);
      await store.setStreamMetadata(usd, { maxCount: 1 });
    });
    const { code } = await home.millrace('scavenge', { signal: AbortSignal.abort() });
    assert.equal(code, 130);
  });

  test('forget makes a person’s payloads unreadable', async () => {
    const headers = { dataSubject: 'ann' };
    await home.fillDefault((store) => store.append(usd, [renamed('USD', 'Ann', { headers })]));
    const first = await home.millrace('forget ann --yes');
    assert.deepEqual([first.code, first.stdout], [0, 'forgot ann\n']);
    assert.match((await home.millrace(`stream read ${usd}`)).stdout, /"\$forgotten"/);
    assert.match((await home.millrace('forget ann --yes')).stdout, /no data of ann/);
    assert.deepEqual(jsonOf(await home.millrace('forget bob --yes --json')), {
      subject: 'bob',
      forgotten: false,
    });
  });
});
