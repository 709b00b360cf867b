// Interrupted exports and imports, and their incomplete results.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { cp, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { openRole } from '../src/platform/engines/open-engines.ts';
import {
  contentOf,
  currencyStream,
  jsonOf,
  programPath,
  renamed,
  useWorkspace,
  workFolder,
  type Outcome,
} from './cli-store-terminal.ts';

describe('a long export or import that is interrupted', () => {
  const home = useWorkspace();
  const streams = Array.from({ length: 20 }, (_, index) => currencyStream(`C${index}`));
  const events = 3_000;

  // The store is filled once and copied for each test.
  let filled: Awaited<ReturnType<typeof workFolder>>;
  before(async () => {
    filled = await workFolder();
    await using store = await openRole(`sqlite:${join(filled.path, 'a.db')}`, 'store');
    const text = 'x'.repeat(2_000);
    for (let sent = 0; sent < events; sent += 100) {
      await Promise.all(
        streams.map((stream, index) =>
          store.append(
            stream,
            Array.from({ length: 5 }, (_, at_) => renamed(`C${index}`, `${sent + at_} ${text}`)),
          ),
        ),
      );
    }
  });
  after(() => filled[Symbol.asyncDispose]());
  beforeEach(() => cp(filled.path, home.folder(), { recursive: true }));

  const exportLine = 'export --store sqlite:a.db --out a.ndjson';
  const importLine = 'import --store sqlite:b.db --in a.ndjson';

  test('by Ctrl-C leaves an export that --resume finishes', async () => {
    const stop = new AbortController();
    const watch = (): void => {
      const begun = existsSync(home.at('a.ndjson')) && statSync(home.at('a.ndjson')).size > 0;
      if (begun) stop.abort();
      else setImmediate(watch);
    };
    watch();
    const { code, stdout, stderr } = await home.millrace(exportLine, { signal: stop.signal });
    assert.deepEqual([code, stdout], [130, '']);
    assert.match(stderr, /^interrupted after [\d,]+ events: continue with --resume\n$/);
    const { size } = await stat(home.at('a.ndjson'));
    assert.equal((await home.millrace(`${exportLine} --resume`)).code, 0);
    const whole = (await home.millrace('export --store sqlite:a.db')).stdout;
    assert.ok(size < whole.length);
    assert.equal(await readFile(home.at('a.ndjson'), 'utf8'), whole);
  });

  test('by Ctrl-C ends a pipe at the end of a line, and leaves no incomplete compressed file', async () => {
    const stop = new AbortController();
    const piped = await home.millrace('export --store sqlite:a.db', {
      signal: stop.signal,
      onStdout: () => stop.abort(),
    });
    assert.equal(piped.code, 130);
    assert.match(piped.stdout, /\}\n$/);
    assert.match(piped.stderr, /^interrupted after [\d,]+ events\n$/);
    const compressed = await home.millrace(`${exportLine}.gz`, { signal: AbortSignal.abort() });
    assert.equal(compressed.code, 130);
    assert.deepEqual(
      (await readdir(home.folder())).filter((name) => name.includes('ndjson')),
      [],
    );
  });

  test('by Ctrl-C leaves an import that finishes when it is run again', async () => {
    await home.millrace(exportLine);
    const stop = new AbortController();
    await using target = await openRole(`sqlite:${home.at('b.db')}`, 'store');
    void (async () => {
      for await (const item of target.subscribe()) if (item.kind === 'events') return stop.abort();
    })();
    const first = await home.millrace(importLine, { signal: stop.signal });
    assert.equal(first.code, 130);
    assert.match(first.stderr, /^interrupted after [\d,]+ new events: run again to continue\n$/);
    const left = (await contentOf(target)).length;
    assert.ok(left > 0 && left < events, `${left}`);
    const second = jsonOf(await home.millrace(`${importLine} --json`));
    assert.deepEqual(second, {
      in: 'a.ndjson',
      appended: events - left,
      duplicates: left,
      complete: true,
      forgottenSubjects: [],
    });
    assert.deepEqual(await contentOf(target), await home.contentOfFile('a.db'));
  });

  test('by a kill loses no written event, and repeats none', async () => {
    // The kill may come at any time, even after the export completed: the result must be the same.
    await killedWhen(
      exportLine,
      () => existsSync(home.at('a.ndjson')) && statSync(home.at('a.ndjson')).size > 0,
    );
    assert.equal((await home.millrace(`${exportLine} --resume`)).code, 0);
    assert.equal(
      await readFile(home.at('a.ndjson'), 'utf8'),
      (await home.millrace('export --store sqlite:a.db')).stdout,
    );
    const log = home.at('b.db-wal');
    await killedWhen(importLine, () => existsSync(log) && statSync(log).size > 1_000_000);
    const outcome = jsonOf(await home.millrace(`${importLine} --json`)) as {
      readonly appended: number;
      readonly duplicates: number;
    };
    assert.equal(outcome.appended + outcome.duplicates, events);
    assert.deepEqual(await home.contentOfFile('b.db'), await home.contentOfFile('a.db'));
  });

  test('by SIGINT exits with 130, unless the process was faster', async () => {
    const { code, stderr } = await home.spawned(exportLine, {
      signalWhen: [
        'SIGINT',
        () => existsSync(home.at('a.ndjson')) && statSync(home.at('a.ndjson')).size > 0,
      ],
    });
    assert.ok(code === 130 || code === 0, `${code} ${stderr}`);
    assert.equal((await home.millrace(`${exportLine} --resume`)).code, 0);
    assert.equal(
      await readFile(home.at('a.ndjson'), 'utf8'),
      (await home.millrace('export --store sqlite:a.db')).stdout,
    );
  });

  function killedWhen(line: string, isTime: () => boolean): Promise<Outcome> {
    return home.spawned(line, { signalWhen: ['SIGKILL', isTime] });
  }

  test('a real process imports from stdin and ends while stdin stays open', async () => {
    const child = spawn(process.execPath, [programPath, 'import', '--json'], {
      cwd: home.folder(),
    });
    let stderr = '';
    child.stderr.on('data', (text: Buffer) => (stderr += text.toString()));
    const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
    // A wrong line ends the import although stdin is still open.
    child.stdin.write('nonsense\n');
    assert.equal(await closed, 1);
    assert.match(stderr, /^IMPORT_INVALID: line 1 is not JSON/);
  });
});
