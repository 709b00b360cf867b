// A library or a driver is loaded only by the code that uses it, so an entry point loads only the packages that it needs.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const root = new URL('../', import.meta.url);

/** The URLs of all ESM and CommonJS modules that importing a file loads. */
function urlsLoadedBy(file: string): readonly string[] {
  const script = `
    import { registerHooks } from 'node:module';
    const urls = [];
    registerHooks({
      load(url, context, next) {
        urls.push(url);
        return next(url, context);
      },
    });
    await import(${JSON.stringify(new URL(file, root).href)});
    console.log(JSON.stringify(urls));`;
  const child = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: root,
    encoding: 'utf8',
  });
  assert.equal(child.status, 0, child.stderr);
  const urls = JSON.parse(child.stdout) as readonly string[];
  assert.ok(urls.length > 0, 'the hook saw no module');
  return urls;
}

/** The packages from node_modules that importing a file loads. */
function packagesLoadedBy(file: string): readonly string[] {
  const names = urlsLoadedBy(file).flatMap((url) => {
    const [, name] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url) ?? [];
    return name === undefined ? [] : [name];
  });
  return [...new Set(names)].toSorted();
}

test('millrace/store loads no driver and no library of another part', () => {
  const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>;
    readonly peerDependencies: Readonly<Record<string, string>>;
  };
  const known = { ...manifest.dependencies, ...manifest.peerDependencies };
  for (const name of ['pino', 'pino-pretty', 'croner', 'aws4fetch', 'ioredis', 'pg']) {
    assert.ok(name in known, `${name} is not a dependency: update this test`);
  }
  // Filters match with RE2, and typebox checks inputs.
  assert.deepEqual(packagesLoadedBy('src/store/index.ts'), ['re2js', 'typebox']);
});

test('each library is loaded by the part that uses it', () => {
  assert.ok(packagesLoadedBy('src/tasks/index.ts').includes('croner'));
  assert.ok(packagesLoadedBy('src/engines/s3/index.ts').includes('aws4fetch'));
  const telemetry = packagesLoadedBy('src/telemetry/index.ts');
  assert.ok(telemetry.includes('pino'));
  // Loaded by the first logger that writes text.
  assert.ok(!telemetry.includes('pino-pretty'));
});

test('topics load their templates with the first template, and millrace start loads no other command', () => {
  const topics = urlsLoadedBy('src/topics/index.ts');
  assert.ok(topics.some((url) => url.endsWith('/topics/topics.ts')));
  assert.ok(!topics.some((url) => url.endsWith('/templates/render-template.ts')));
  const commands = urlsLoadedBy('src/cli/run-cli.ts').filter((url) => url.includes('/commands/'));
  assert.deepEqual(
    commands.map((url) => url.split('/').at(-1)),
    ['start.ts'],
  );
});

test('the server starts without undici, which takes longer to load than most of its modules', () => {
  const files = ['server/api/index.ts', 'server/topics/index.ts', 'destinations/webhook/index.ts'];
  const imports = files.map((file) => `await import('${new URL(`src/${file}`, root).href}');`);
  const report = 'console.log(JSON.stringify(process.moduleLoadList))';
  const script = [...imports, report].join('\n');
  const args = ['--input-type=module', '--eval', script];
  const child = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  assert.equal(child.status, 0, child.stderr);
  const loaded = JSON.parse(child.stdout) as readonly string[];
  assert.ok(loaded.includes('NativeModule http'));
  assert.deepEqual(
    loaded.filter((name) => name.includes('undici')),
    [],
  );
});

test('npm start runs without the type stripper once its modules are in the compile cache', () => {
  const { NODE_COMPILE_CACHE: _own, ...env } = process.env;
  const report = `process.on('exit', () => console.log(JSON.stringify(process.moduleLoadList)));`;
  const args = ['--import', `data:text/javascript,${encodeURIComponent(report)}`];
  const run = () =>
    spawnSync(process.execPath, [...args, 'tools/millrace.mjs', '--version'], {
      cwd: root,
      env,
      encoding: 'utf8',
    });
  assert.equal(run().status, 0);
  const [version = '', builtins = '[]'] = run().stdout.split('\n');
  assert.match(version, /^\d+\.\d+\.\d+/);
  const loaded = JSON.parse(builtins) as readonly string[];
  assert.ok(loaded.includes('NativeModule internal/modules/typescript'));
  assert.deepEqual(
    loaded.filter((name) => name.includes('amaro')),
    [],
  );
});
