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
import { findExamples, type Example } from './examples.ts';

interface Manifest {
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

const root = fileURLToPath(new URL('..', import.meta.url));
const bin = (program: string): string => join(root, 'node_modules', '.bin', program);

/**
 * An empty project of a user with the packed package, its dependencies and no optional driver: the same
 * folders as `npm install` creates, in a tenth of the time.
 */
describe('the packed package', () => {
  let project = '';
  let tarball = '';
  let installed = '';
  let generated = '';
  let manifest: Manifest;

  before(() => {
    run(process.execPath, ['tools/pack.ts', '--no-check']);
    [tarball = ''] = globSync('dist/millrace-*.tgz', { cwd: root }).map((file) => join(root, file));
    project = mkdtempSync(join(tmpdir(), 'millrace-packed-'));
    writeFileSync(join(project, 'package.json'), '{"private":true,"type":"module"}');
    installed = join(project, 'node_modules', 'millrace');
    generated = join(project, 'generated');
    for (const folder of [installed, generated]) mkdirSync(folder, { recursive: true });
    run('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed]);
    manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as Manifest;
    const link = (target: string, ...path: readonly string[]): void => {
      const linkPath = join(project, 'node_modules', ...path);
      mkdirSync(dirname(linkPath), { recursive: true });
      symlinkSync(target, linkPath);
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
    // All entry points are loaded in one process, so they share their dependencies.
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
    // Most entry points need no driver before their first call.
    assert.ok(Object.keys(failed).length < names.length / 2, Object.keys(failed).join(', '));
  });

  test('a feature whose driver is missing names the package to install', () => {
    const { status, stderr } = inProject(
      `import { lintSource } from 'millrace/contracts'; await lintSource('a.ts', 'const a = 1')`,
    );
    assert.equal(status, 1);
    assert.match(stderr, /DRIVER_MISSING/);
    assert.match(stderr, /npm install oxc-parser/);
  });

  test('the console is included, built and compressed', () => {
    const page = readFileSync(join(installed, 'console', 'dist', 'index.html'), 'utf8');
    const [, script = ''] = /src="\.\/(assets\/[\w-]+\.js)"/.exec(page) ?? [];
    for (const end of ['', '.br', '.gz']) {
      assert.ok(
        existsSync(join(installed, 'console', 'dist', `${script}${end}`)),
        `${script}${end}`,
      );
    }
    assert.equal(existsSync(join(installed, 'console', 'src')), false);
  });

  test('the command runs from the folder where npm installs it', () => {
    const command = join(project, 'node_modules', '.bin', 'millrace');
    const tour = run(process.execPath, [command, 'tour'], project);
    assert.match(tour, /payment\.completed\.v1/);
  });

  test('every entry point has types, and `millrace new aggregate` writes code that compiles and passes its tests', () => {
    const command = join(project, 'node_modules', '.bin', 'millrace');
    const write = (...flags: readonly string[]): string =>
      run(process.execPath, [command, 'new', 'aggregate', ...flags], generated);
    write('core-template-manager', 'payment-request', '--tenant', 'demo-za');
    // `delete` is a reserved word of TypeScript.
    write('banking', 'delete');
    const tests = globSync('*/*/*.test.ts', { cwd: generated });
    const flags = ['--test', '--test-isolation=none', '--test-reporter=tap', ...tests];
    assert.match(run(process.execPath, flags, generated), /^# pass 16$/m);
    // One program with the imports of all entry points, because both read the same declarations.
    const imports = entryPoints().map((name, at) =>
      name.endsWith('.json')
        ? `import e${at} from '${name}' with { type: 'json' }; export { e${at} };`
        : `export * as e${at} from '${name}';`,
    );
    writeFileSync(join(generated, 'all.ts'), imports.join('\n'));
    const tsconfig = {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: { typeRoots: [join(root, 'node_modules', '@types')] },
      include: ['.'],
    };
    writeFileSync(join(generated, 'tsconfig.json'), JSON.stringify(tsconfig));
    run(bin('tsc'), ['-p', generated, '--checkers', '1']);
  });

  test('the types work for a strict TypeScript user, checked by tsc', () => {
    writeFileSync(
      join(project, 'use.ts'),
      `import { buildEventType, parseStreamName } from 'millrace/contracts';
       const type: 'payment.completed.v1' = buildEventType('payment', 'completed', 1);
       export const tenant: string = parseStreamName('banking.currency.v1-core-USD').tenant + type;`,
    );
    const strict = ['--noEmit', '--checkers', '1', '--strict', '--module', 'nodenext'];
    run(bin('tsc'), [...strict, '--types', '', '--skipLibCheck', 'false', 'use.ts'], project);
  });

  test('the declarations import only files of the package', () => {
    for (const file of globSync('**/*.d.ts', { cwd: installed })) {
      const text = readFileSync(join(installed, file), 'utf8');
      for (const [, target = ''] of text.matchAll(/(?:from |import\()['"](\.[^'"]+)['"]/g)) {
        const declared = join(installed, dirname(file), target.replace(/\.[jt]s$/, '.d.ts'));
        assert.ok(existsSync(declared), `${file}: ${target}`);
      }
    }
  });

  test('every example in the sources and the documents compiles, and so does the Nest application', () => {
    const examples = findExamples();
    assert.ok(examples.length > 30, `only ${examples.length} examples found`);
    assert.equal(problemsOf(examples, manifest.exports), '');
  });

  test('the package contains no tests, and no helpers of our tests', () => {
    const packed = globSync('{src,modules}/**/*', { cwd: installed });
    const templates = 'src/cli/templates/';
    const isForTests = (file: string): boolean =>
      /\.test\.|^src\/testing\/(?:kurrent-stand-in|support)\/|^modules\/[^/]+\/testing\//.test(
        file,
      );
    assert.ok(packed.length > 1_000, `only ${packed.length} files found`);
    assert.deepEqual(
      packed.filter((file) => isForTests(file) && !file.startsWith(templates)),
      [],
    );
  });

  test('publint reports no problem', () => {
    run(bin('publint'), ['run', tarball, '--strict']);
  });

  // One rule in tools/pack.ts declares all entry points, and the test above resolves each of them.
  test('are-the-types-wrong accepts the entry points for ESM', () => {
    const some = ['contracts', 'schemas/domain-event-envelope.json'];
    for (const name of some) assert.ok(entryPoints().includes(`millrace/${name}`), name);
    const flags = ['--profile', 'esm-only', '--no-color', '--no-emoji'];
    run(bin('attw'), [tarball, ...flags, '--entrypoints', ...some]);
  });

  function entryPoints(): readonly string[] {
    return Object.keys(manifest.exports).map((path) => path.replace(/^\./, 'millrace'));
  }

  function inProject(code: string): SpawnSyncReturns<string> {
    return spawnSync(process.execPath, ['--input-type=module', '-e', code], {
      cwd: project,
      encoding: 'utf8',
    });
  }
});

/** Returns the output; a failure shows all of it. */
function run(program: string, flags: readonly string[], cwd = root): string {
  const { status, stdout, stderr, error } = spawnSync(program, flags, { cwd, encoding: 'utf8' });
  if (error !== undefined) throw error;
  assert.equal(status, 0, `${program} ${flags.join(' ')}\n${stdout}${stderr}`);
  return stdout;
}

/** The output of tsc for the examples and the Nest app of the tests, with the declarations of the package. */
function problemsOf(examples: readonly Example[], entries: Manifest['exports']): string {
  const paths = Object.fromEntries(
    Object.entries(entries).flatMap(([path, entry]) =>
      typeof entry === 'string'
        ? []
        : [[path.replace(/^\./, 'millrace'), [join('../../dist/package', entry.types)]]],
    ),
  );
  mkdirSync(join(root, '.millrace'), { recursive: true });
  // Inside the repository, where the drivers are installed and the documented modules can be found.
  const folder = mkdtempSync(join(root, '.millrace', 'examples-'));
  try {
    const origins = new Map<string, string>();
    for (const [index, { where, code }] of examples.entries()) {
      origins.set(`example-${index}.ts`, where);
      writeFileSync(join(folder, `example-${index}.ts`), `${code}\nexport {};\n`);
    }
    const tsconfig = {
      extends: '../../tsconfig.json',
      compilerOptions: {
        paths,
        noUnusedLocals: false,
        noUnusedParameters: false,
        // Nest applications are compiled with these options; no other example has decorators.
        experimentalDecorators: true,
        emitDecoratorMetadata: true,
        erasableSyntaxOnly: false,
      },
      include: ['*.ts', '../../test/nest/app/**/*.ts'],
      exclude: [],
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig));
    const flags = ['-p', folder, '--checkers', '1'];
    const { status, stdout, stderr } = spawnSync(bin('tsc'), flags, {
      cwd: root,
      encoding: 'utf8',
    });
    if (status === 0) return '';
    return `tsc: ${stdout}${stderr}`.replace(
      /\S*(example-\d+\.ts)/g,
      (_all, file: string) => origins.get(file) ?? file,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
