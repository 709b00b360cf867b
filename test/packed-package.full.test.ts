import assert from 'node:assert/strict';
import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

interface Manifest {
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, unknown>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

const root = fileURLToPath(new URL('..', import.meta.url));
const bin = (program: string): string => join(root, 'node_modules', '.bin', program);

/**
 * A user's empty project with the packed package, its dependencies and none of the optional drivers:
 * laid out as `npm install` does it, at a tenth of its cost.
 */
describe('the packed package', () => {
  let project = '';
  let tarball = '';
  let installed = '';
  let manifest: Manifest;

  before(() => {
    run(process.execPath, ['tools/pack.ts', '--no-check']);
    [tarball = ''] = globSync('dist/millrace-*.tgz', { cwd: root }).map((file) => join(root, file));
    project = mkdtempSync(join(tmpdir(), 'millrace-packed-'));
    writeFileSync(join(project, 'package.json'), '{"private":true,"type":"module"}');
    installed = join(project, 'node_modules', 'millrace');
    mkdirSync(installed, { recursive: true });
    run('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed]);
    manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as Manifest;
    const link = (target: string, ...path: readonly string[]): void => {
      const place = join(project, 'node_modules', ...path);
      mkdirSync(dirname(place), { recursive: true });
      symlinkSync(target, place);
    };
    for (const name of Object.keys(manifest.dependencies)) {
      link(join(root, 'node_modules', name), name);
    }
    for (const [name, program] of Object.entries(manifest.bin)) {
      link(join(installed, program), '.bin', name);
    }
  });
  after(() => rmSync(project, { recursive: true, force: true }));

  test('every entry point loads, or names the package to install', () => {
    const names = entryPoints();
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
    const tour = run(process.execPath, [command, 'tour'], project);
    assert.match(tour, /payment\.completed\.v1/);
    const flags = ['new', 'aggregate', 'banking', 'currency', '--dir', project];
    run(process.execPath, [command, ...flags], project);
    const tested = run(
      process.execPath,
      [join('banking', 'currency', 'currency.test.ts')],
      project,
    );
    assert.match(tested, /pass [1-9]/);
  });

  test('the types work for a strict TypeScript user, checked by tsc', () => {
    writeFileSync(
      join(project, 'use.ts'),
      `import { buildEventType, parseStreamName } from 'millrace/contracts';
       const type: 'payment.completed.v1' = buildEventType('payment', 'completed', 1);
       export const tenant: string = parseStreamName('banking.currency.v1-core-USD').tenant + type;`,
    );
    checkTypes('use.ts', '--skipLibCheck', 'false');
  });

  test('every entry point has types, which import only files of the package', () => {
    const imports = entryPoints().map((name, at) =>
      name.endsWith('.json')
        ? `import e${at} from '${name}' with { type: 'json' }; export { e${at} };`
        : `export * as e${at} from '${name}';`,
    );
    writeFileSync(join(project, 'all.ts'), imports.join('\n'));
    checkTypes('all.ts', '--skipLibCheck', '--resolveJsonModule');
    for (const file of globSync('**/*.d.ts', { cwd: installed })) {
      const text = readFileSync(join(installed, file), 'utf8');
      for (const [, target = ''] of text.matchAll(/(?:from |import\()['"](\.[^'"]+)['"]/g)) {
        const declared = join(installed, dirname(file), target.replace(/\.[jt]s$/, '.d.ts'));
        assert.ok(existsSync(declared), `${file}: ${target}`);
      }
    }
  });

  test('publint finds nothing to complain about', () => {
    run(bin('publint'), ['run', tarball, '--strict']);
  });

  // All entry points are declared by one rule of tools/pack.ts, and the test above resolves each.
  test('are-the-types-wrong finds the entry points right for ESM', () => {
    const some = ['contracts', 'adapters/sqlite', 'nest/typeorm'];
    for (const name of some) assert.ok(entryPoints().includes(`millrace/${name}`), name);
    const flags = ['--profile', 'esm-only', '--no-color', '--no-emoji'];
    run(bin('attw'), [tarball, ...flags, '--entrypoints', ...some]);
  });

  function entryPoints(): readonly string[] {
    return Object.keys(manifest.exports).map((path) => path.replace(/^\./, 'millrace'));
  }

  function checkTypes(file: string, ...flags: readonly string[]): void {
    const strict = ['--noEmit', '--checkers', '1', '--strict', '--module', 'nodenext'];
    run(bin('tsc'), [...strict, '--types', '', ...flags, file], project);
  }

  function inProject(code: string): SpawnSyncReturns<string> {
    return spawnSync(process.execPath, ['--input-type=module', '-e', code], {
      cwd: project,
      encoding: 'utf8',
    });
  }
});

/** Its output, which a failure shows whole. */
function run(program: string, flags: readonly string[], cwd = root): string {
  const { status, stdout, stderr, error } = spawnSync(program, flags, { cwd, encoding: 'utf8' });
  if (error !== undefined) throw error;
  assert.equal(status, 0, `${program} ${flags.join(' ')}\n${stdout}${stderr}`);
  return stdout;
}
