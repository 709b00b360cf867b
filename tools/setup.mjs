// Runs before every npm script, on any Node from 18: installs the packages of the lock file, including the
// pinned Node, and on request the servers for the tests. Reads only a few files if nothing has
// changed.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { consoleIsBuilt } from './console-fingerprint.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const modules = join(root, 'node_modules');
const stamp = join(modules, '.millrace-setup');
const lockFolder = join(root, '.millrace', 'setup.lock');

/** Program → Debian package; PostgreSQL keeps its server programs off the PATH. */
const servers = [
  {
    program: 'initdb',
    package: 'postgresql',
    folders: () => versionFolders('/usr/lib/postgresql'),
  },
  { program: 'redis-server', package: 'redis-server', folders: () => [] },
  { program: 'nats-server', package: 'nats-server', folders: () => ['/usr/sbin'] },
  // The browser of the console's tests.
  { program: 'chromium', package: 'chromium', folders: () => [] },
];

try {
  installDependencies();
  if (process.argv.includes('--console')) buildConsole();
  if (process.argv.includes('--servers')) installServers();
} catch (error) {
  say(error.message);
  process.exit(1);
}

function installDependencies() {
  const wanted = fingerprint();
  if (installed(wanted)) return;
  withLock(() => {
    if (installed(wanted)) return;
    // Use the npm that runs this script, wherever it is installed.
    const npm = process.env.npm_execpath;
    const flags = ['ci', '--no-audit', '--no-fund', '--loglevel=error'];
    const [program, ...args] = npm ? [process.execPath, npm, ...flags] : ['npm', ...flags];
    install('installing dependencies with npm ci (about 20 s, more on a slow network)', () =>
      run(program, args, { cwd: root, shell: !npm && process.platform === 'win32' }),
    );
    requirePinnedNode();
    writeFileSync(stamp, wanted);
  });
}

/** The product runs without the console, so a failed build is reported and nothing more. */
function buildConsole() {
  try {
    if (consoleIsBuilt()) return;
    withLock(() => {
      if (consoleIsBuilt()) return;
      const pinned = join(modules, '.bin', process.platform === 'win32' ? 'node.cmd' : 'node');
      const program = existsSync(pinned) ? pinned : process.execPath;
      install('building the console (about 5 s)', () =>
        run(program, [join('tools', 'build-console.ts')], { cwd: root }),
      );
    });
  } catch (error) {
    say(
      `the console cannot be built, everything else works; try it with npm run console:build\n${error.message}`,
    );
  }
}

/** Prints each installation and its duration. */
function install(what, work) {
  const startedAt = performance.now();
  say(`${what}…`);
  work();
  say(`done in ${Math.round((performance.now() - startedAt) / 1000)} s`);
}

/** Shows the program's output only if it fails. */
function run(program, args, options) {
  const result = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1e8, ...options });
  if (result.status === 0) return;
  const output = result.error ? result.error.message : `${result.stdout}${result.stderr}`;
  fail(`${program} ${args.join(' ')} failed:\n${output.trimEnd()}`);
}

function fingerprint() {
  const hash = createHash('sha256');
  for (const file of ['package-lock.json', 'package.json', 'tools/runtime/package.json']) {
    hash.update(readFileSync(join(root, file)));
  }
  return `${hash.digest('hex')} ${process.platform}-${process.arch}`;
}

function installed(wanted) {
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted;
}

function requirePinnedNode() {
  const windows = process.platform === 'win32';
  if (existsSync(join(modules, '.bin', windows ? 'node.cmd' : 'node'))) return;
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 18)) return;
  fail(
    `there is no packaged Node for ${process.platform}-${process.arch}: install Node 22.18 or newer (this is ${process.version})`,
  );
}

function installServers() {
  const missing = servers.filter((server) => !find(server)).map((server) => server.package);
  if (missing.length === 0) return;
  const command = `apt-get install -y --no-install-recommends ${missing.join(' ')}`;
  const mayInstall =
    process.platform === 'linux' &&
    process.getuid?.() === 0 &&
    onPath('apt-get') &&
    process.env.MILLRACE_SETUP_NO_INSTALL === undefined;
  if (!mayInstall) {
    fail(
      `the tests need servers that are not installed: ${missing.join(', ')}\n` +
        `  Debian, Ubuntu:  sudo ${command}\n` +
        `  macOS:           brew install ${missing.join(' ')}\n` +
        `or run the tests that need none: npm run check`,
    );
  }
  const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const [, ...flags] = command.split(' ');
  install(`installing ${missing.join(', ')} with apt-get (about 30 s)`, () =>
    withoutServiceStart(() => {
      run('apt-get', ['update', '-qq'], { env: environment });
      run('apt-get', [...flags, '-qq'], { env: environment });
    }),
  );
  const left = servers.filter((server) => !find(server)).map((server) => server.package);
  if (left.length > 0) fail(`could not install ${left.join(', ')}; try it yourself: ${command}`);
}

/** Debian starts a newly installed server on its default port, which must not happen here. */
function withoutServiceStart(work) {
  const policy = '/usr/sbin/policy-rc.d';
  const ours = !existsSync(policy);
  if (ours) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    work();
  } finally {
    if (ours) rmSync(policy, { force: true });
  }
}

function find(server) {
  const folders = [...server.folders(), ...(process.env.PATH ?? '').split(delimiter)];
  return folders.some((folder) => existsSync(join(folder, server.program)));
}

function onPath(program) {
  return find({ program, folders: () => [] });
}

function versionFolders(base) {
  return existsSync(base) ? readdirSync(base).map((version) => join(base, version, 'bin')) : [];
}

/** Two commands in a new clone must not install into node_modules at the same time. */
function withLock(work) {
  mkdirSync(join(root, '.millrace'), { recursive: true });
  const holder = join(lockFolder, 'pid');
  for (;;) {
    try {
      mkdirSync(lockFolder);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      const pid = existsSync(holder) ? Number(readFileSync(holder, 'utf8')) : undefined;
      if (pid !== undefined && !alive(pid)) rmSync(lockFolder, { recursive: true, force: true });
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    }
  }
  writeFileSync(holder, String(process.pid));
  try {
    work();
  } finally {
    rmSync(lockFolder, { recursive: true, force: true });
  }
}

function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function say(message) {
  process.stderr.write(`millrace: ${message}\n`);
}

/** Throws instead of exiting, so that locks and policies are removed. */
function fail(message) {
  throw new Error(message);
}
