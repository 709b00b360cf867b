// The commands on PostgreSQL: its schema, and events from and to the embedded store.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import pg from 'pg';
import { newMessage } from '../src/testing/conformance/outbox/fixture.ts';
import { openRole } from '../src/platform/engines/open-engines.ts';
import type { EventStore } from '../src/store/event-store.ts';
import { sharedPostgres } from '../src/testing/index.ts';
import {
  contentOf,
  currencyStream,
  eventsOf,
  jsonOf,
  renamed,
  useWorkspace,
} from './cli-store-terminal.ts';

const usd = currencyStream('USD');
const eur = currencyStream('EUR');
const chf = currencyStream('CHF');

/** A store with everything: retention, a deleted stream that was appended to again, and a tombstone. */
async function liveThrough(store: EventStore): Promise<void> {
  await store.append(
    usd,
    ['a', 'b', 'c'].map((name) => renamed('USD', name)),
  );
  await store.setStreamMetadata(usd, { truncateBefore: 1, custom: { owner: 'ada' } });
  await store.append(eur, [renamed('EUR', 'gone')]);
  await store.deleteStream(eur);
  await store.append(eur, [renamed('EUR', 'back', { headers: { dataSubject: 'ann' } })]);
  await store.append(chf, [renamed('CHF', 'over')]);
  await store.tombstoneStream(chf);
  await store.append(usd, [renamed('USD', '\u0001 ünïcödé ✓')]);
}

/** Removes the tombstone event, which the target creates itself; all other events must be equal. */
async function sameContent(one: EventStore, other: EventStore): Promise<void> {
  const withoutTombstones = async (store: EventStore): Promise<unknown[]> =>
    (await contentOf(store)).filter(
      (event) => (event as { readonly type: string }).type !== '$streamDeleted',
    );
  assert.deepEqual(await withoutTombstones(one), await withoutTombstones(other));
  for (const stream of [usd, eur, chf]) {
    assert.deepEqual(await one.streamInfo(stream), await other.streamInfo(stream));
  }
  for (const stream of [usd, eur]) {
    const read = async (store: EventStore): Promise<unknown[]> =>
      (await store.readStream(stream).toArray()).map(({ revision, payload }) => [
        revision,
        payload,
      ]);
    assert.deepEqual(await read(one), await read(other));
  }
}

describe('millrace migrate on PostgreSQL', () => {
  const home = useWorkspace();

  test('prints the migrations, applies each once, and then has nothing to do', async () => {
    const { url } = await sharedPostgres();
    const env = { MILLRACE_STORE: url };
    const printed = await home.millrace('migrate --print', { env });
    assert.equal(printed.code, 0, printed.stderr);
    assert.match(printed.stdout, /^-- 1: event store\ncreate sequence/m);
    assert.equal((await home.millrace('migrate --print --all')).code, 0);

    const rejected = await home.millrace(`stream read ${usd}`, { env });
    assert.equal(rejected.code, 1);
    assert.match(
      rejected.stderr,
      /^CONFIG_INVALID: there is no event store at postgres:.* yet: run/,
    );

    const first = await home.millrace('migrate', { env });
    assert.match(first.stdout, /^applied migration 1: event store\napplied migration 2: /);
    const second = await home.millrace('migrate', { env });
    assert.deepEqual(second, {
      code: 0,
      stdout: `${url} is up to date: nothing to do\n`,
      stderr: '',
    });
    assert.equal((await home.millrace('migrate --print', { env })).stdout, '-- nothing to do\n');
    assert.deepEqual(jsonOf(await home.millrace('migrate --json', { env })), {
      store: url,
      applied: [],
    });
    assert.deepEqual(await home.millrace(`stream read ${usd} --json`, { env }), {
      code: 0,
      stdout: '',
      stderr: '',
    });
  });

  test('applies each migration once when several processes run it at the same time', async () => {
    const { url } = await sharedPostgres();
    const outcomes = await Promise.all(
      [1, 2, 3, 4].map(() => home.millrace(`migrate --json --store ${url}`)),
    );
    const applied = outcomes.map((outcome) => (jsonOf(outcome) as { applied: object[] }).applied);
    assert.equal(applied.filter((steps) => steps.length > 0).length, 1);
  });

  test('prints SQL that can be executed manually, also for another schema', async () => {
    const { url } = await sharedPostgres();
    const store = `${url}?schema=shop`;
    const { stdout } = await home.millrace(`migrate --print --all --store ${store}`);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      await client.query(stdout);
    } finally {
      await client.end();
    }
    const { stdout: said } = await home.millrace(`migrate --store ${store}`);
    assert.equal(said, `${store} is up to date: nothing to do\n`);
    const line = `stream append ${usd} --type currency.created.v1 --data 1 --store ${store}`;
    assert.equal((await home.millrace(line)).code, 0);
    const subscriptions = await home.millrace(`subscriptions list --store ${store}`);
    assert.equal(subscriptions.code, 0, subscriptions.stderr);
    const elsewhere = await home.millrace(`stream read ${usd} --store ${url}`);
    assert.match(elsewhere.stderr, /^CONFIG_INVALID: there is no event store/);
  });

  test('prints SQL that creates the outbox for a ledger with migrations turned off', async () => {
    const { url } = await sharedPostgres();
    const { stdout } = await home.millrace(`migrate --outbox --print --all --store ${url}`);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      await client.query(stdout);
    } finally {
      await client.end();
    }
    await using ledger = await openRole(url, 'outbox', { migrate: 'off' });
    await ledger.enqueue(newMessage());
    assert.equal((await ledger.claimDueBatch('w', 1)).length, 1);
    const { stdout: said } = await home.millrace(`migrate --outbox --store ${url}`);
    assert.equal(said, `${url} is up to date: nothing to do\n`);
  });

  test('does not show a wrong password', async () => {
    const { url } = await sharedPostgres();
    const wrong = url.replace('//postgres@', '//nobody:hunter2@');
    for (const line of ['migrate', `stream read ${usd}`, 'export']) {
      const { code, stderr } = await home.millrace(`${line} --store ${wrong}`);
      assert.equal(code, 1);
      assert.match(stderr, /^STORE_UNAVAILABLE: /);
      assert.doesNotMatch(stderr, /hunter2/);
    }
  });
});

describe('millrace export and import with PostgreSQL', () => {
  const home = useWorkspace();

  test('copy a file into the database and back with all stream settings', async () => {
    const { url } = await sharedPostgres();
    await home.fill('a.db', liveThrough);
    await home.millrace('export --store sqlite:a.db --out a.ndjson');
    const first = jsonOf(await home.millrace(`import --store ${url} --in a.ndjson --json`));
    const again = jsonOf(await home.millrace(`import --store ${url} --in a.ndjson --json`));
    const nothingNew = { in: 'a.ndjson', complete: true, forgottenSubjects: [] };
    assert.deepEqual(first, { ...nothingNew, appended: 10, duplicates: 0 });
    assert.deepEqual(again, { ...nothingNew, appended: 0, duplicates: 10 });

    const out = await home.millrace(`export --store ${url} --out b.ndjson`);
    assert.equal(out.code, 0, out.stderr);
    assert.equal((await home.millrace('import --store sqlite:b.db --in b.ndjson')).code, 0);
    await using source = await openRole(`sqlite:${home.at('a.db')}`, 'store');
    await using postgres = await openRole(url, 'store');
    await using copy = await openRole(`sqlite:${home.at('b.db')}`, 'store');
    await sameContent(postgres, source);
    await sameContent(copy, source);
  });

  test('resume an export that was cut, and an import that was stopped', async () => {
    const { url } = await sharedPostgres();
    {
      await using store = await openRole(url, 'store');
      for (let round = 0; round < 30; round += 1) {
        await Promise.all(
          [usd, eur, chf].map((stream) =>
            store.append(
              stream,
              Array.from({ length: 40 }, (_, index) => renamed('USD', `${round} ${index}`)),
            ),
          ),
        );
      }
    }
    const whole = (await home.millrace(`export --store ${url}`)).stdout;
    const stop = new AbortController();
    const interrupted = await home.millrace(`export --store ${url}`, {
      signal: stop.signal,
      onStdout: () => stop.abort(),
    });
    assert.equal(interrupted.code, 130);
    assert.ok(interrupted.stdout.length < whole.length && interrupted.stdout.length > 0);
    const line = `export --store ${url} --out a.ndjson --resume`;
    assert.equal((await home.millrace(line)).code, 0);
    assert.equal(await readFile(home.at('a.ndjson'), 'utf8'), whole);

    const target = `${url}?schema=copy`;
    const half = whole.slice(0, whole.length / 2);
    const torn = await home.millrace(`import --store ${target}`, { stdin: half });
    assert.equal(torn.code, 1);
    assert.match(torn.stderr, /^IMPORT_INVALID: line \d+ ends too early/);
    const rest = jsonOf(await home.millrace(`import --store ${target} --in a.ndjson --json`)) as {
      readonly appended: number;
      readonly duplicates: number;
    };
    assert.equal(rest.appended + rest.duplicates, 3_600);
    assert.ok(rest.duplicates > 1_000);
    await using one = await openRole(url, 'store');
    await using other = await openRole(target, 'store');
    assert.deepEqual(await contentOf(other), await contentOf(one));
  });

  test('an import rejects a target that has diverged', async () => {
    const { url } = await sharedPostgres();
    await home.fill('a.db', liveThrough);
    await home.millrace(`stream append ${usd} --type currency.created.v1 --data 1 --store ${url}`);
    const { stdout } = await home.millrace('export --store sqlite:a.db');
    const { code, stderr } = await home.millrace(`import --store ${url}`, { stdin: stdout });
    assert.equal(code, 1);
    assert.match(stderr, /^IMPORT_DIVERGED: the target has diverged: its stream '.*-USD'/);
  });
});

describe('the other commands on PostgreSQL', () => {
  const home = useWorkspace();

  test('append, read, follow, retain, scavenge, forget and delete', async () => {
    const { url } = await sharedPostgres();
    const env = { MILLRACE_STORE: url };
    const ok = async (line: string): Promise<string> => {
      const { code, stdout, stderr } = await home.millrace(line, { env });
      assert.equal(code, 0, `${line}: ${stderr}`);
      return stdout;
    };
    for (const data of [1, 2, 3]) {
      await ok(
        `stream append ${usd} --type currency.created.v1 --data ${data} --header dataSubject=ann`,
      );
    }
    const payloads = (text: string): unknown[] => eventsOf(text).map(({ payload }) => payload);
    assert.deepEqual(payloads(await ok(`stream read ${usd} --json --backwards`)), [3, 2, 1]);
    assert.deepEqual(payloads(await ok('stream tail --from-start --limit 2 --json')), [1, 2]);
    assert.deepEqual(payloads(await ok(`stream tail ${usd} --from-start --limit 1 --json`)), [1]);
    await ok(`stream metadata ${usd} --max-count 1`);
    assert.match(await ok('scavenge'), /^removed 2 events from 1 streams/);
    assert.equal(await ok('forget ann --yes'), 'forgot ann\n');
    assert.match(await ok(`stream read ${usd}`), /"\$forgotten"/);
    await ok(`stream delete ${usd}`);
    await ok(`stream tombstone ${usd} --yes`);
    assert.match(await ok(`stream info ${usd}`), /permanently deleted/);
  });
});
