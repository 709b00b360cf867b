// Output and exit codes of the command line. Streams, environment and signals are tested in a separate
// process; test/packed-package.full.test.ts compiles the code that `new` writes.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import packageJson from '../package.json' with { type: 'json' };
import { runMillrace as millrace, workFolder, type Outcome } from './cli-store-terminal.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const main = join(root, 'src/cli/main.ts');

interface ProcessOptions {
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Arguments of Node itself. */
  readonly node?: readonly string[] | undefined;
}

function millraceProcess(args: readonly string[], options: ProcessOptions = {}): Promise<Outcome> {
  const { env = {}, node = [] } = options;
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [...node, main, ...args],
      { cwd: root, env: { ...process.env, ...env } },
      (_error, stdout, stderr) => resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    );
  });
}

describe('millrace', () => {
  test('lists its commands, with and without help', async () => {
    const shown = await Promise.all(
      [[], ['--help'], ['-h'], ['help']].map((args) => millrace(args)),
    );
    for (const { code, stdout, stderr } of shown) {
      assert.deepEqual([code, stderr], [0, '']);
      for (const command of ['tour', 'new', 'lint', 'completion']) {
        assert.match(stdout, new RegExp(`^ {2}${command} `, 'm'));
      }
    }
  });

  test('shows the help of a command in three ways', async () => {
    const [first, ...others] = await Promise.all(
      [
        ['help', 'lint'],
        ['lint', '--help'],
        ['lint', 'src', '-h'],
        ['--help', 'lint'],
      ].map((args) => millrace(args)),
    );
    assert.equal(first?.code, 0);
    assert.match(first.stdout, /millrace lint <paths…>/);
    assert.match(first.stdout, /--max-warnings <N>/);
    assert.match(first.stdout, /Examples\n {2}millrace lint src/);
    for (const other of others) assert.deepEqual(other, first);
  });

  test('prints its version', async () => {
    const { code, stdout } = await millraceProcess(['--version']);
    assert.deepEqual([code, stdout], [0, `${packageJson.version}\n`]);
  });

  test('rejects a wrong command line with one line and exit code 2', async () => {
    const { code, stdout, stderr } = await millraceProcess(['lnit']);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^millrace: unknown command 'lnit': did you mean lint\?.*\n$/);
  });

  test('explains an error by its code and its remedy', async () => {
    const { code, stderr } = await millrace(['new', 'aggregate', 'Banking', 'currency']);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^NAME_INVALID: .*did you mean 'banking'\?\n {2}Use the spelling that the message suggests/,
    );
  });

  test('prints stack traces only with MILLRACE_DEBUG', async () => {
    const args = ['new', 'aggregate', 'banking', 'currency', '--dir', 'package.json'];
    const quiet = await millraceProcess(args);
    assert.equal(quiet.code, 1);
    assert.match(quiet.stderr, /^unexpected error: ENOTDIR/);
    assert.doesNotMatch(quiet.stderr, /^ +at /m);
    const loud = await millraceProcess(args, { env: { MILLRACE_DEBUG: '1' } });
    assert.match(loud.stderr, /^ +at /m);
  });

  test('exits with 130 when it is interrupted', async () => {
    // Sends the signal as soon as a listener is registered.
    const interrupt =
      "process.on('newListener', (name) => name === 'SIGINT' && setImmediate(() => process.kill(process.pid, name)))";
    const { code, stdout } = await millraceProcess(['lint', 'src'], {
      node: ['--import', `data:text/javascript,${encodeURIComponent(interrupt)}`],
    });
    assert.deepEqual([code, stdout], [130, '']);
  });

  test('writes completion scripts that know every command', async () => {
    for (const shell of ['bash', 'zsh']) {
      const { code, stdout } = await millrace(['completion', shell]);
      assert.equal(code, 0);
      assert.match(stdout, /lint\).*--max-warnings/);
      assert.match(stdout, /new\).*aggregate outbox --dir/);
    }
  });
});

describe('millrace lint', () => {
  const bad = "get('app:core:banking:currency:v1:USD');\n";
  const warned = "defineEvent('payment.complete.v1', schema);\n";

  test('reports each finding with its location and its fix, and fails', async () => {
    await using folder = await workFolder();
    await writeFile(join(folder.path, 'a.ts'), `\n${bad}`);
    const { code, stdout, stderr } = await millrace(['lint', '.'], { cwd: folder.path });
    assert.deepEqual([code, stderr], [1, '']);
    assert.match(stdout, /^a\.ts:2:5 {2}error {2}redis-key {2}the tenant must be in braces/);
    assert.match(stdout, /^ {4}→ 'app:\{core\}:banking:currency:v1:USD'$/m);
    assert.match(stdout, /^1 file: 1 error, 0 warnings$/m);
  });

  test('passes clean code, and counts the read and skipped files', async () => {
    await using folder = await workFolder();
    await writeFile(join(folder.path, 'a.ts'), 'export const a = 1;\n');
    await writeFile(join(folder.path, 'b.ts'), '\0');
    const { code, stdout } = await millrace(['lint', folder.path]);
    assert.deepEqual([code, stdout], [0, '1 file: no findings; 1 skipped (not text)\n']);
  });

  test('fails on warnings only when there are more than allowed', async () => {
    await using folder = await workFolder();
    await writeFile(join(folder.path, 'a.ts'), warned);
    const codes = await Promise.all(
      [
        [],
        ['--max-warnings', '1'],
        ['--max-warnings', '0'],
        ['--quiet', '--max-warnings', '0'],
      ].map(async (flags) => (await millrace(['lint', folder.path, ...flags])).code),
    );
    assert.deepEqual(codes, [0, 0, 1, 1]);
    const { stdout } = await millrace(['lint', folder.path, '--quiet']);
    assert.equal(stdout, '1 file: 0 errors, 1 warning\n');
  });

  test('prints one JSON document for machines', async () => {
    await using folder = await workFolder();
    await writeFile(join(folder.path, 'a.ts'), bad + warned);
    await writeFile(join(folder.path, 'b.ts'), '\0');
    const { code, stdout } = await millrace(['lint', '.', '--json'], { cwd: folder.path });
    assert.equal(code, 1);
    const { findings, ...rest } = JSON.parse(stdout) as { readonly findings: readonly object[] };
    assert.deepEqual(rest, {
      files: 1,
      skipped: [{ file: 'b.ts', reason: 'not text' }],
      truncated: false,
    });
    assert.deepEqual(findings[0], {
      rule: 'redis-key',
      severity: 'error',
      file: 'a.ts',
      line: 1,
      column: 5,
      start: 4,
      end: 38,
      text: "'app:core:banking:currency:v1:USD'",
      reason: 'the tenant must be in braces, {core}, to keep its keys in one slot of a cluster',
      suggestion: "'app:{core}:banking:currency:v1:USD'",
    });
    assert.equal(findings.length, 2);
  });

  test('applies --rule and --root', async () => {
    await using folder = await workFolder();
    await writeFile(join(folder.path, 'a.ts'), `${bad}on('acme.tasks.email-send.pending');\n`);
    const { stdout } = await millrace(['lint', folder.path, '--rule', 'subject', '--root', 'acme']);
    assert.match(stdout, /acme\.tasks\.email-send\.pending.*expected queue/);
    assert.doesNotMatch(stdout, /redis-key/);
  });
});

describe('millrace new aggregate', () => {
  const args = [
    'new',
    'aggregate',
    'core-template-manager',
    'payment-request',
    '--tenant',
    'demo-za',
  ];

  test('writes a module under the given names, which lints clean', async () => {
    await using folder = await workFolder();
    const { code, stdout } = await millrace(args, { cwd: folder.path });
    assert.equal(code, 0);
    assert.match(
      stdout,
      /wrote core-template-manager\/payment-request\/payment-request-events\.ts/,
    );
    assert.match(stdout, /node --test core-template-manager\/payment-request/);

    const home = join(folder.path, 'core-template-manager', 'payment-request');
    assert.deepEqual((await readdir(home)).toSorted(), [
      'README.md',
      'payment-request-events.ts',
      'payment-request-names.ts',
      'payment-request-projection.ts',
      'payment-request.test.ts',
      'payment-request.ts',
    ]);
    for (const file of await readdir(home)) {
      assert.doesNotMatch(await readFile(join(home, file), 'utf8'), /sample|\{\{/i, file);
    }
    assert.match(
      await readFile(join(home, 'README.md'), 'utf8'),
      /`coreTemplateManager\.paymentRequest\.v1-demo-za-<id>`/,
    );

    const lint = await millrace(['lint', folder.path, '--max-warnings', '0']);
    assert.equal(lint.code, 0, lint.stdout);
  });

  test('overwrites a file only with --force', async () => {
    await using folder = await workFolder();
    const file = join(folder.path, 'core-template-manager/payment-request/payment-request.ts');
    await millrace(args, { cwd: folder.path });
    const written = await readFile(file, 'utf8');
    await writeFile(file, '// mine');
    const rejected = await millrace(args, { cwd: folder.path });
    assert.equal(rejected.code, 2);
    assert.match(rejected.stderr, /already exists: pass --force/);
    assert.equal(await readFile(file, 'utf8'), '// mine');
    assert.equal((await millrace([...args, '--force'], { cwd: folder.path })).code, 0);
    assert.equal(await readFile(file, 'utf8'), written);
  });

  test('lists the files without writing them in a dry run', async () => {
    await using folder = await workFolder();
    const { code, stdout } = await millrace([...args, '--dry-run', '--dir', 'modules'], {
      cwd: folder.path,
    });
    assert.equal(code, 0);
    assert.equal(stdout.match(/^would write modules\//gm)?.length, 6);
    assert.deepEqual(await readdir(folder.path), []);
  });

  test('rejects invalid names and tenants, and paths as names', async () => {
    await using folder = await workFolder();
    const rejected = await Promise.all(
      [
        ['PaymentHub', 'payment'],
        ['paymenthub', 'payment_request'],
        ['..', 'payment'],
        ['paymenthub', '../../x'],
        ['paymenthub', 'payment', '--tenant', 'Core'],
      ].map((bad) => millrace(['new', 'aggregate', ...bad], { cwd: folder.path })),
    );
    for (const { code, stderr } of rejected) {
      assert.equal(code, 1);
      assert.match(stderr, /^NAME_INVALID: /);
    }
    assert.deepEqual(await readdir(folder.path), []);
  });
});

describe('millrace tour', () => {
  test('shows the results of the contracts, without colours in a pipe', async () => {
    const { code, stdout, stderr } = await millraceProcess(['tour']);
    assert.deepEqual([code, stderr], [0, '']);
    for (const shown of [
      'payment.completed.v1',
      'coreTemplateManager.template.v1-demo-za-inv-7',
      'TENANT_UNKNOWN',
      '/correlationId is missing',
      'app:{core}:banking:currency:v1:USD',
      'gbe.notify.customer.cust_abc123.alert',
      '1 s, 2 s, 4 s, 8 s, 16 s',
      "redisKeys.snapshot(tenant, 'banking', 'currency', 1, id)",
      'npm run millrace -- new aggregate',
    ]) {
      assert.ok(stdout.includes(shown), shown);
    }
    assert.ok(!stdout.includes('\u001b'));
  });
});
