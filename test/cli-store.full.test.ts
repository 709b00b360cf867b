// Commands on a store: which store that is, wrong command lines, help, and the store's schema.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { currencyStream, jsonOf, runMillrace, useWorkspace } from './cli-store-terminal.ts';

const usd = currencyStream('USD');

describe('the store of a command', () => {
  const home = useWorkspace();
  test('is --store, else MILLRACE_STORE, else a file in .millrace', async () => {
    const append = `stream append ${usd} --type currency.created.v1 --data 1`;
    assert.equal((await home.millrace(`${append} --store sqlite:one.db`)).code, 0);
    const env = { MILLRACE_STORE: 'sqlite:two.db' };
    assert.equal((await home.millrace(append, { env })).code, 0);
    assert.equal((await home.millrace(`${append} --store sqlite:one.db`, { env })).code, 0);
    assert.equal((await home.millrace(append, { env: { MILLRACE_STORE: '' } })).code, 0);
    assert.equal((await home.contentOfFile('one.db')).length, 2);
    assert.equal((await home.contentOfFile('two.db')).length, 1);
    assert.equal((await home.contentOfFile('.millrace/events.db')).length, 1);
  });

  test('is not created by a mistyped name, unless the command writes events', async () => {
    for (const line of [
      `stream read ${usd}`,
      `stream info ${usd}`,
      `stream tail ${usd}`,
      `stream delete ${usd}`,
      `stream tombstone ${usd} --yes`,
      `stream metadata ${usd}`,
      'projections status',
      'projections switch sub:a:b:v1',
      'projections retire sub:a:b:v1 --yes',
      'sagas list',
      `sagas show ${usd}`,
      'scavenge',
      'forget ann --yes',
      'export',
    ]) {
      const { code, stdout, stderr } = await home.millrace(`${line} --store sqlite:tpyo.db`);
      assert.deepEqual([code, stdout], [1, ''], line);
      assert.match(stderr, /^CONFIG_INVALID: there is no event store at sqlite:tpyo\.db yet: run/);
    }
    assert.deepEqual(await readdir(home.folder()), []);
  });

  test('never shows the password of its URL', async () => {
    for (const store of [
      'postgres://app:hunter2@127.0.0.1:1/shop',
      'postgres://app:hunter2#@127.0.0.1:1/shop',
      'postgres://app:hunter2/@127.0.0.1:1/shop',
      'postgres://127.0.0.1:1/shop?user=app&password=hunter2',
      'mysql://app:hunter2@h/db',
    ]) {
      for (const line of ['migrate', 'migrate --print', `stream read ${usd}`, 'export']) {
        const { code, stdout, stderr } = await home.millrace(`${line} --store ${store}`);
        assert.equal(code, 1);
        assert.doesNotMatch(stdout + stderr, /hunter2/);
      }
    }
    const { stdout } = await home.millrace(
      'migrate --print --all --json --store postgres://app:hunter2@h/shop',
    );
    assert.match(stdout, /"store": "postgres:\/\/app:\*\*\*@h\/shop"/);
  });

  test('without its driver reports what to install', async () => {
    // Simulates a driver that is not installed.
    const hook = `import { registerHooks } from 'node:module';
      registerHooks({ resolve(name, context, next) {
        if (name !== 'pg') return next(name, context);
        throw Object.assign(new Error("Cannot find package 'pg'"), { code: 'ERR_MODULE_NOT_FOUND' });
      } });`;
    const { code, stderr } = await home.spawned(
      `stream append ${usd} --type currency.created.v1 --data 1`,
      {
        node: ['--import', `data:text/javascript,${encodeURIComponent(hook)}`],
        env: { MILLRACE_STORE: 'postgres://app:hunter2@127.0.0.1:1/shop' },
      },
    );
    assert.equal(code, 1);
    assert.match(stderr, /^DRIVER_MISSING: .*npm install pg$/m);
    assert.doesNotMatch(stderr, /hunter2/);
  });
});

describe('a command on a store', () => {
  const home = useWorkspace();
  test('every command on a store rejects a wrong command line with one line and exit code 2', async () => {
    for (const [line, said] of [
      ['migrate now', /takes options only, not 'now'/],
      ['migrate --all', /--all requires --print/],
      ['stream read', /needs one stream/],
      ['stream read a b', /needs one stream/],
      ['stream read a --from x', /--from takes a non-negative integer, not 'x'/],
      ['stream read a --limit -1', /limit/],
      ['stream append a', /needs --type/],
      ['stream append a --type a.b.v1', /needs --data/],
      [`stream append ${usd} --type a.b.v1 --data {`, /--data is not JSON/],
      [`stream append ${usd} --type a.b.v1 --data 1 --expected x`, /--expected takes any, none/],
      [`stream append ${usd} --type a.b.v1 --data 1 --header x`, /--header takes name=value/],
      ['stream tail a --tenant core', /takes a stream or a filter/],
      ['stream tail --limit many', /non-negative integer/],
      ['stream info', /needs one stream/],
      ['stream delete', /needs one stream/],
      ['stream delete a --expected soon', /--expected takes/],
      [`stream tombstone ${usd}`, /permanently: pass --yes/],
      ['stream metadata', /needs one stream/],
      ['stream metadata a --max-count few', /--max-count takes a non-negative integer/],
      ['stream metadata a --max-age old', /--max-age takes a duration such as 30s/],
      ['projections status now', /takes options only/],
      ['projections rebuild', /needs one projection/],
      ['projections rebuild sub:a:b:v1', /needs --modules/],
      ['projections rebuild sub:a:b:v1 --modules no.ts', /--modules no\.ts cannot be loaded/],
      ['projections retire sub:a:b:v1', /pass --yes/],
      ['scavenge now', /takes options only/],
      ['forget --yes', /needs one subject/],
      ['forget ann', /pass --yes/],
      ['export x', /takes options only/],
      ['export --resume', /need a file/],
      ['export --json', /need a file/],
      ['export --out a --resume --force', /--resume and --force cannot be combined/],
      ['import x', /takes options only/],
      ['stream', undefined],
    ] as const) {
      const { code, stdout, stderr } = await home.millrace(line);
      if (said === undefined) {
        assert.equal(code, 0);
        assert.match(stdout, /stream read +shows/);
        assert.doesNotMatch(stdout, /migrate/);
        continue;
      }
      assert.deepEqual([code, stdout], [2, ''], line);
      assert.match(stderr, said);
      assert.equal(stderr.trimEnd().split('\n').length, 1, stderr);
    }
    assert.deepEqual(await readdir(home.folder()), []);
  });

  test('every command on a store has help with its store, its options and an example', async () => {
    for (const name of [
      'migrate',
      'stream read',
      'stream append',
      'stream tail',
      'stream info',
      'stream delete',
      'stream tombstone',
      'stream metadata',
      'projections status',
      'projections rebuild',
      'projections switch',
      'projections retire',
      'sagas list',
      'sagas show',
      'sagas resume',
      'scavenge',
      'forget',
      'export',
      'import',
    ]) {
      const { code, stdout } = await home.millrace(`${name} --help`);
      assert.equal(code, 0);
      assert.match(stdout, /--store <url>/);
      assert.match(stdout, /--json/);
      assert.match(stdout, /MILLRACE_STORE/);
      assert.match(stdout, new RegExp(`Examples\\n {2}.*millrace ${name}`));
      assert.deepEqual(await home.millrace(`help ${name}`), { code, stdout, stderr: '' });
    }
  });
});

describe('the completion of two-word commands', () => {
  test('offers the second word, then the options', async () => {
    const { stdout } = await runMillrace(['completion', 'bash']);
    const complete = (...words: readonly string[]): string =>
      execFileSync(
        'bash',
        [
          '-c',
          `${stdout}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _millrace; echo "\${COMPREPLY[*]}"`,
          'bash',
          ...words,
        ],
        { encoding: 'utf8' },
      ).trim();
    assert.match(complete('millrace', 'str'), /^stream$/);
    assert.equal(complete('millrace', 'stream', 'ta'), 'tail');
    assert.match(complete('millrace', 'stream', ''), /^read append tail info/);
    assert.match(complete('millrace', 'stream', 'read', '--b'), /^--backwards$/);
    assert.match(complete('millrace', 'export', '--re'), /^--resume$/);
    assert.match(complete('millrace', 'lint', '--max'), /^--max-warnings$/);
    const zsh = await runMillrace(['completion', 'zsh']);
    // A simple parse: an apostrophe in a summary would end the string too early.
    execFileSync('bash', ['-n'], { input: zsh.stdout, stdio: 'pipe' });
  });
});

describe('millrace migrate', () => {
  const home = useWorkspace();
  test('applies pending migrations, and reports when there are none', async () => {
    const first = await home.millrace('migrate');
    assert.deepEqual([first.code, first.stderr], [0, '']);
    assert.match(first.stdout, /^applied migration 1: /);
    assert.match(first.stdout, /sqlite:\.millrace\/events\.db is up to date$/m);
    const second = await home.millrace('migrate');
    assert.equal(second.stdout, 'sqlite:.millrace/events.db is up to date: nothing to do\n');
    assert.deepEqual(jsonOf(await home.millrace('migrate --json')), {
      store: 'sqlite:.millrace/events.db',
      applied: [],
    });
  });

  test('applies nothing with --print', async () => {
    const all = await home.millrace('migrate --print');
    assert.match(all.stdout, /^-- 1: .*create table events.*user_version = \d+;\n$/s);
    assert.equal(existsSync(home.at('.millrace')), false);
    await home.millrace('migrate');
    assert.equal((await home.millrace('migrate --print')).stdout, '-- nothing to do\n');
    assert.equal((await home.millrace('migrate --print --all')).stdout, all.stdout);
    const { steps } = jsonOf(await home.millrace('migrate --print --all --json')) as {
      readonly steps: readonly object[];
    };
    assert.deepEqual(Object.keys(steps[0] ?? {}), ['number', 'title', 'sql']);
  });
});
