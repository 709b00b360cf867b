// ntfy as a program: Debian's package, which also runs on older releases, from the mirror of this machine's
// apt. Nothing is installed; apt uses separate lists and settings in a folder.

import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const timeoutMs = 300_000;
/** The newest ntfy is in sid. */
const suite = 'sid';

/** Returns the path of the program; it is not downloaded again. */
export async function fetchNtfy(folder: string): Promise<string> {
  const home = join(folder, 'ntfy');
  const program = join(home, 'usr/bin/ntfy');
  if (existsSync(program)) return program;
  const mirror = mirrorOf(aptSources());
  if (mirror === undefined) throw new Error('this machine has no Debian mirror in its apt sources');
  console.log('downloading ntfy (a package of Debian sid)…');
  // An interrupted download must not be used as a program.
  const fresh = `${home}.${process.pid}`;
  try {
    await download(fresh, mirror);
    const archive = readdirSync(fresh).find((name) => name.endsWith('.deb'));
    if (archive === undefined) throw new Error('apt downloaded no package');
    await run('dpkg-deb', ['-x', join(fresh, archive), join(fresh, 'unpacked')]);
    renameSync(join(fresh, 'unpacked'), home);
  } catch (error) {
    const { stderr = '', message } = error as {
      readonly stderr?: string;
      readonly message: string;
    };
    throw new Error(stderr.split('\n').find((line) => line.startsWith('E:')) ?? message, {
      cause: error,
    });
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  return program;
}

async function download(into: string, mirror: Mirror): Promise<void> {
  for (const part of ['lists/partial', 'archives/partial', 'sources']) {
    mkdirSync(join(into, part), { recursive: true });
  }
  const lines = ['Types: deb', `URIs: ${mirror.uri}`, `Suites: ${suite}`, 'Components: main'];
  if (mirror.signedBy !== undefined) lines.push(`Signed-By: ${mirror.signedBy}`);
  writeFileSync(join(into, 'sources/ntfy.sources'), `${lines.join('\n')}\n`);
  const settings = [
    'Dir::Etc::sourcelist=/dev/null',
    `Dir::Etc::sourceparts=${join(into, 'sources')}`,
    `Dir::State::lists=${join(into, 'lists')}`,
    `Dir::Cache::archives=${join(into, 'archives')}`,
    `Dir::Cache::pkgcache=${join(into, 'pkgcache.bin')}`,
    `Dir::Cache::srcpkgcache=${join(into, 'srcpkgcache.bin')}`,
    'Acquire::Languages=none',
  ].flatMap((setting) => ['-o', setting]);
  await run('apt-get', [...settings, 'update'], { timeout: timeoutMs });
  await run('apt-get', [...settings, 'download', 'ntfy'], { cwd: into, timeout: timeoutMs });
}

interface Mirror {
  readonly uri: string;
  readonly signedBy: string | undefined;
}

function aptSources(): string {
  const parts = '/etc/apt/sources.list.d';
  const files = existsSync(parts) ? readdirSync(parts).map((name) => join(parts, name)) : [];
  return ['/etc/apt/sources.list', ...files]
    .filter((file) => existsSync(file))
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n\n');
}

/** Returns the first Debian mirror, in either format that apt reads. */
function mirrorOf(sources: string): Mirror | undefined {
  for (const stanza of sources.split(/\n\s*\n/)) {
    const field = (name: string): string | undefined =>
      new RegExp(`^${name}:\\s*(\\S+)`, 'mi').exec(stanza)?.[1];
    const uri = field('URIs');
    if (uri !== undefined && /\/debian\/?$/.test(uri)) return { uri, signedBy: field('Signed-By') };
  }
  const [, options = '', uri] =
    /^deb\s+(?:\[([^\]]*)\]\s+)?(\S+\/debian\/?)\s/m.exec(sources) ?? [];
  return uri === undefined ? undefined : { uri, signedBy: /signed-by=(\S+)/.exec(options)?.[1] };
}
