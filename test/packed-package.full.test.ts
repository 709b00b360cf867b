import assert from 'node:assert/strict';
import { execFileSync, spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const bin = (program: string): string => join(root, 'node_modules', '.bin', program);

/** A user's empty project with the packed package in it and none of the optional drivers. */
describe('the packed package', () => {
  let project = '';
  let tarball = '';
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string>>;
    readonly peerDependencies: Readonly<Record<string, string>>;
  };

  before(() => {
    execFileSync(process.execPath, ['tools/pack.ts', '--no-check'], {
      cwd: root,
      stdio: 'inherit',
    });
    [tarball = ''] = globSync('dist/millrace-*.tgz', { cwd: root }).map((file) => join(root, file));
    project = mkdtempSync(join(tmpdir(), 'millrace-packed-'));
    writeFileSync(join(project, 'package.json'), '{"private":true,"type":"module"}');
    const flags = ['install', '--omit=peer', '--no-audit', '--no-fund', '--loglevel=error'];
    execFileSync('npm', [...flags, '--prefer-offline', tarball], {
      cwd: project,
      stdio: 'inherit',
    });
  });
  after(() => rmSync(project, { recursive: true, force: true }));

  test('every entry point loads, or names the package to install', () => {
    const names = Object.keys(manifest.exports).map((path) => path.replace(/^\./, 'millrace'));
    // In one process: what one entry point has loaded, another finds as well.
    const { stdout, stderr } = inProject(`
      const failed = {};
      for (const name of ${JSON.stringify(names)}) {
        const attributes = name.endsWith('.json') ? { with: { type: 'json' } } : {};
        await import(name, attributes).catch((error) => { failed[name] = String(error); });
      }
      console.log(JSON.stringify(failed));`);
    const failed = JSON.parse(stdout || assert.fail(stderr)) as Readonly<Record<string, string>>;
    const drivers = Object.keys(manifest.peerDependencies);
    for (const [name, error] of Object.entries(failed)) {
      assert.ok(
        drivers.some((driver) => error.includes(driver)),
        `${name}: ${error}`,
      );
    }
    // Most need no driver before they are asked for something.
    assert.ok(Object.keys(failed).length < names.length / 2, Object.keys(failed).join(', '));
  });

  test('a feature whose driver is missing says what to install', () => {
    const { status, stderr } = inProject(
      `import { lintSource } from 'millrace/contracts'; await lintSource('a.ts', 'const a = 1')`,
    );
    assert.equal(status, 1);
    assert.match(stderr, /DRIVER_MISSING/);
    assert.match(stderr, /npm install oxc-parser/);
  });

  test('the command runs from where npm puts it', () => {
    const command = join(project, 'node_modules', '.bin', 'millrace');
    const run = spawnSync(process.execPath, [command, 'tour'], { cwd: project, encoding: 'utf8' });
    assert.equal(run.status, 0, run.stderr);
    assert.match(run.stdout, /payment\.completed\.v1/);
    const flags = [command, 'new', 'aggregate', 'banking', 'currency', '--dir', project];
    const made = spawnSync(process.execPath, flags, { cwd: project, encoding: 'utf8' });
    assert.equal(made.status, 0, made.stderr);
    const tests = ['--test', join('banking', 'currency', 'currency.test.ts')];
    const tested = spawnSync(process.execPath, tests, { cwd: project, encoding: 'utf8' });
    assert.equal(tested.status, 0, tested.stdout);
  });

  test('the types work for a strict TypeScript user, checked by tsc', () => {
    writeFileSync(
      join(project, 'use.ts'),
      `import { buildEventType, parseStreamName } from 'millrace/contracts';
       const type: 'payment.completed.v1' = buildEventType('payment', 'completed', 1);
       export const tenant: string = parseStreamName('banking.currency.v1-core-USD').tenant + type;`,
    );
    const flags = [
      '--noEmit',
      '--checkers',
      '1',
      '--strict',
      '--module',
      'nodenext',
      '--skipLibCheck',
      'false',
      '--types',
      '',
      'use.ts',
    ];
    const run = spawnSync(bin('tsc'), flags, { cwd: project, encoding: 'utf8' });
    assert.equal(run.status, 0, run.stdout);
  });

  test('publint finds nothing to complain about', () => {
    const run = spawnSync(bin('publint'), ['run', 'dist', '--strict'], {
      cwd: root,
      encoding: 'utf8',
    });
    assert.equal(run.status, 0, run.stdout + run.stderr);
  });

  test('are-the-types-wrong finds every entry point right for ESM', () => {
    const run = spawnSync(
      bin('attw'),
      [tarball, '--profile', 'esm-only', '--no-color', '--no-emoji'],
      {
        cwd: root,
        encoding: 'utf8',
      },
    );
    assert.equal(run.status, 0, run.stdout);
  });

  function inProject(code: string): SpawnSyncReturns<string> {
    return spawnSync(process.execPath, ['--input-type=module', '-e', code], {
      cwd: project,
      encoding: 'utf8',
    });
  }
});
