// Export and import through files and pipes.

import assert from 'node:assert/strict';
import { readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { openRole } from '../src/platform/engines/open-engines.ts';
import {
  contentOf,
  currencyStream,
  eventsOf,
  jsonOf,
  renamed,
  runMillrace,
  useWorkspace,
  workFolder,
} from './cli-store-terminal.ts';
import { soakMinutes } from './store/rig.ts';
import { codePoint } from '../src/testing/support/code-point.ts';

const usd = currencyStream('USD');

describe('millrace export and import', () => {
  const home = useWorkspace();
  const fillSome = (name = '.millrace/events.db'): Promise<void> =>
    home.fill(name, async (store) => {
      await store.append(usd, [renamed('USD', 'a'), renamed('USD', 'b')]);
      await store.append(currencyStream('EUR'), [renamed('EUR', '€')]);
      await store.setStreamMetadata(usd, { maxCount: 10, custom: { owner: 'ada' } });
      await store.append(usd, [renamed('USD', 'c')]);
    });

  test('copy a store through a file, and through a pipe', async () => {
    await fillSome();
    const exported = await home.millrace('export --out events.ndjson');
    assert.deepEqual(
      [exported.code, exported.stdout],
      [0, 'exported 5 events to events.ndjson, up to position 0000000000000005\n'],
    );
    const piped = await home.millrace('export');
    assert.equal(piped.stderr, '');
    assert.equal(await readFile(home.at('events.ndjson'), 'utf8'), piped.stdout);
    assert.equal((await stat(home.at('events.ndjson'))).mode & 0o777, 0o600);

    const first = await home.millrace('import --in events.ndjson --store sqlite:b.db');
    assert.deepEqual(first, { code: 0, stdout: 'imported 5 events\n', stderr: '' });
    const second = jsonOf(
      await home.millrace('import --store sqlite:c.db --json', { stdin: piped.stdout }),
    );
    assert.deepEqual(second, {
      in: '-',
      appended: 5,
      duplicates: 0,
      complete: true,
      forgottenSubjects: [],
    });
    const source = await home.contentOfFile('.millrace/events.db');
    assert.deepEqual(await home.contentOfFile('b.db'), source);
    assert.deepEqual(await home.contentOfFile('c.db'), source);
    const info = JSON.parse(
      (await home.millrace(`stream info ${usd} --store sqlite:b.db --json`)).stdout,
    ) as { readonly metadata: object };
    assert.deepEqual(info.metadata, { maxCount: 10, custom: { owner: 'ada' } });
    const again = await home.millrace('import --in events.ndjson --store sqlite:b.db');
    assert.equal(again.stdout, 'imported 0 events, 5 duplicates\n');
    assert.deepEqual(await home.contentOfFile('b.db'), source);
  });

  test('compress a file that ends in .gz', async () => {
    await fillSome();
    assert.equal((await home.millrace('export --out events.ndjson.gz')).code, 0);
    const text = gunzipSync(await readFile(home.at('events.ndjson.gz'))).toString();
    assert.equal(text, (await home.millrace('export')).stdout);
    assert.deepEqual((await readdir(home.folder())).toSorted(), ['.millrace', 'events.ndjson.gz']);
    assert.equal((await home.millrace('import --in events.ndjson.gz --store sqlite:b.db')).code, 0);
    assert.deepEqual(
      await home.contentOfFile('b.db'),
      await home.contentOfFile('.millrace/events.db'),
    );
    const resumed = await home.millrace('export --out events.ndjson.gz --resume');
    assert.deepEqual([resumed.code, resumed.stdout], [1, '']);
    assert.match(resumed.stderr, /^NOT_SUPPORTED: a compressed export cannot be resumed/);
    await truncate(home.at('events.ndjson.gz'), 100);
    const torn = await home.millrace('import --in events.ndjson.gz --store sqlite:c.db');
    assert.equal(torn.code, 1);
    assert.match(torn.stderr, /^IMPORT_INVALID: .* is damaged: unexpected end of file/);
  });

  test('an export does not overwrite a file, and an import rejects a missing file', async () => {
    await fillSome();
    for (const name of ['kept.ndjson', 'kept.ndjson.gz']) {
      await writeFile(home.at(name), 'mine\n');
      const rejected = await home.millrace(`export --out ${name}`);
      assert.equal(rejected.code, 1);
      assert.match(rejected.stderr, /^CONFIG_INVALID: the file '.*' exists already: resume it,/);
      assert.equal(await readFile(home.at(name), 'utf8'), 'mine\n');
      assert.equal((await home.millrace(`export --out ${name} --force`)).code, 0);
    }
    const missing = await home.millrace('import --in no-such.ndjson');
    assert.match(
      missing.stderr,
      /^CONFIG_INVALID: the file '.*no-such\.ndjson' cannot be read \(ENOENT\)/,
    );
    const folderOut = await home.millrace('export --out .millrace --force');
    assert.match(folderOut.stderr, /^CONFIG_INVALID: .*cannot be written \(EISDIR\)/);
    assert.match(
      (await home.millrace('import --in .millrace')).stderr,
      /cannot be read \(not a file\)/,
    );
  });

  test('resume a file that is older than the store', async () => {
    await fillSome();
    assert.equal((await home.millrace('export --out events.ndjson --resume')).code, 0);
    await home.fillDefault((store) => store.append(usd, [renamed('USD', 'later')]));
    const { stdout } = await home.millrace('export --out events.ndjson --resume --json');
    assert.deepEqual(JSON.parse(stdout), {
      out: 'events.ndjson',
      events: 1,
      position: '0000000000000006',
      resumedAfter: '0000000000000005',
    });
    assert.equal(
      await readFile(home.at('events.ndjson'), 'utf8'),
      (await home.millrace('export')).stdout,
    );
    const nothing = await home.millrace('export --out events.ndjson --resume');
    assert.match(nothing.stdout, /^exported 0 more events/);
    assert.equal(
      await readFile(home.at('events.ndjson'), 'utf8'),
      (await home.millrace('export')).stdout,
    );
  });

  test('resume a file that was cut anywhere', async () => {
    await fillSome();
    const whole = Buffer.from((await home.millrace('export')).stdout);
    const cuts = fc.sample(fc.integer({ min: 0, max: whole.length }), 6);
    for (const cut of [0, 1, whole.length - 1, whole.indexOf('\n') + 1, ...cuts]) {
      await writeFile(home.at('cut.ndjson'), whole.subarray(0, cut));
      const { code, stderr } = await home.millrace('export --out cut.ndjson --resume');
      assert.deepEqual([code, stderr], [0, ''], `cut at ${cut}`);
      assert.deepEqual(await readFile(home.at('cut.ndjson')), whole, `cut at ${cut}`);
    }
  });

  test('leave a file alone that does not end like an export', async () => {
    await fillSome();
    for (const text of ['something else', 'two\nlines\n', '{"position":"x"}\n', '[]\n\n']) {
      await writeFile(home.at('mine.txt'), text);
      const { code, stderr } = await home.millrace('export --out mine.txt --resume');
      assert.equal(code, 1);
      assert.match(stderr, /^CONFIG_INVALID: the file '.*mine\.txt' does not end like an export/);
      assert.equal(await readFile(home.at('mine.txt'), 'utf8'), text);
    }
  });

  test('apply filters and a start position', async () => {
    await fillSome();
    const names = async (flags: string): Promise<unknown[]> =>
      eventsOf((await home.millrace(`export ${flags}`)).stdout)
        .slice(0, -1)
        .map(({ payload, type }) =>
          type.startsWith('$') ? type : (Object.values(payload as object)[0] as unknown),
        );
    assert.deepEqual(await names('--after 0000000000000003'), ['$metadata', 'c']);
    assert.deepEqual(await names(`--stream-prefix ${usd}`), ['a', 'b', '$metadata', 'c']);
    assert.deepEqual(await names('--type currency.renamed.v1'), ['a', 'b', '€', 'c']);
    assert.deepEqual(await names('--tenant nobody'), []);
    const wrong = await home.millrace('export --after 12');
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /^POSITION_INVALID: /);
  });

  test('an import rejects a target that has diverged, and the error names the stream and the line', async () => {
    await fillSome();
    await fillSome('other.db');
    await home.millrace('export --out events.ndjson');
    const before = await home.contentOfFile('other.db');
    const { code, stdout, stderr } = await home.millrace(
      'import --in events.ndjson --store sqlite:other.db',
    );
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(
      stderr,
      /^IMPORT_DIVERGED: the target has diverged: its stream '.*' has another event at revision \d+ \(line \d/,
    );
    assert.deepEqual(await home.contentOfFile('other.db'), before);
  });

  test('name the line that is not an event', async () => {
    const { code, stderr } = await home.millrace('import', { stdin: '\n{"a":1}\n' });
    assert.equal(code, 1);
    assert.match(stderr, /^IMPORT_INVALID: line 2 is not a recorded event: \/stream is missing/);
  });

  test('report an incomplete file, and forgotten subjects', async () => {
    await home.fillDefault(async (store) => {
      await store.append(usd, [renamed('USD', 'Ann', { headers: { dataSubject: 'ann' } })]);
      await store.forget('ann');
    });
    const { stdout } = await home.millrace('export');
    const lines = stdout.trimEnd().split('\n');
    const { code, stderr } = await home.millrace('import --store sqlite:b.db', {
      stdin: `${lines[0]}\n`,
    });
    assert.equal(code, 0);
    assert.match(stderr, /^incomplete: the file does not end with a checkpoint/m);
    assert.match(stderr, /^forgotten in the source: ann: run millrace forget/m);
  });

  const event = fc.record({
    id: fc.constantFrom('USD', 'EUR', 'CHF'),
    name: fc.oneof(fc.jsonValue(), fc.string({ unit: codePoint })),
    headers: fc.option(fc.dictionary(fc.string(), fc.jsonValue()), { nil: undefined }),
  });

  test('export and import preserve arbitrary events', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 60 }), async (events) => {
        await using other = await workFolder();
        const options = { cwd: other.path };
        {
          await using store = await openRole(`sqlite:${join(other.path, 'a.db')}`, 'store');
          for (const { id, name, headers } of events) {
            const more = headers === undefined ? {} : { headers };
            await store.append(currencyStream(id), [renamed(id, name, more)]);
          }
        }
        await runMillrace(['export', '--store', 'sqlite:a.db', '--out', 'a.ndjson'], options);
        await runMillrace(['import', '--store', 'sqlite:b.db', '--in', 'a.ndjson'], options);
        await using a = await openRole(`sqlite:${join(other.path, 'a.db')}`, 'store');
        await using b = await openRole(`sqlite:${join(other.path, 'b.db')}`, 'store');
        assert.deepEqual(await contentOf(b), await contentOf(a));
      }),
      { numRuns: soakMinutes > 0 ? 50 : 3 },
    );
  });
});
