// Creates the published package in `dist/`: compiled by tsc, because Node does not strip types below
// node_modules, with the exports of package.json changed from sources to compiled files.

import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { consoleIsBuilt } from './console-fingerprint.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
/** The folder that a package has in its archive. */
const packed = join(dist, 'package');

interface Manifest {
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

const published = [
  'name',
  'version',
  'description',
  'keywords',
  'license',
  'type',
  'engines',
  'dependencies',
  'peerDependencies',
  'peerDependenciesMeta',
];

rmSync(dist, { recursive: true, force: true });
// `npm test` has already checked the same sources.
const unchecked = process.argv.includes('--no-check') ? ['--noCheck'] : [];
run('tsc', ['-p', 'tsconfig.build.json', '--checkers', '1', ...unchecked]);
if (!consoleIsBuilt()) run('node', ['tools/build-console.ts']);
const copied = [
  'schemas',
  'console/dist',
  'LICENSE',
  'README.md',
  'CHANGELOG.md',
  // `millrace new` copies the templates, and the Redis engine reads its Lua scripts at run time.
  'src/cli/templates',
  ...globSync('src/**/*.lua', { cwd: root }),
];
for (const path of copied) cpSync(join(root, path), join(packed, path), { recursive: true });
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
writeFileSync(join(packed, 'package.json'), `${JSON.stringify(toPublished(manifest), null, 2)}\n`);
for (const program of Object.values(manifest.bin))
  chmodSync(join(packed, compiled(program)), 0o755);
// `npm pack` would choose files, but the folder contains only those of the package.
run('tar', ['-czf', `millrace-${String(manifest['version'])}.tgz`, 'package'], dist);

function toPublished(source: Manifest): Record<string, unknown> {
  const publishedEntries = published
    .filter((field) => field in source)
    .map((field) => [field, source[field]]);
  return {
    ...(Object.fromEntries(publishedEntries) as Record<string, unknown>),
    bin: mapValues(source.bin, compiled),
    exports: mapValues(source.exports, (target) =>
      target.endsWith('.ts')
        ? { types: compiled(target).replace(/\.js$/, '.d.ts'), default: compiled(target) }
        : target,
    ),
    sideEffects: false,
  };
}

function compiled(source: string): string {
  return source.replace(/\.ts$/, '.js');
}

function mapValues<T>(
  from: Readonly<Record<string, string>>,
  map: (value: string) => T,
): Record<string, T> {
  return Object.fromEntries(Object.entries(from).map(([key, value]) => [key, map(value)]));
}

function run(program: string, flags: readonly string[], cwd = root): void {
  const result = spawnSync(program, flags, { cwd, stdio: 'inherit' });
  if (result.status !== 0) throw new Error(`${program} ${flags.join(' ')} failed`);
}
