// Starts and controls the process of served-sqlite-main.ts.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { reservePort } from '../../src/testing/servers/reserve-port.ts';
import type { ServedSqliteInput, ServedSqliteMessage } from './served-sqlite-main.ts';

type Usage = Extract<ServedSqliteMessage, { readonly kind: 'usage' }>;

export interface ServedSqlite extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly file: string;
  pid(): number;
  kill(): Promise<void>;
  /** With the same port and file. */
  startAgain(): Promise<void>;
  /** Resource usage after a garbage collection. */
  usage(): Promise<Usage>;
}

const script = new URL('./served-sqlite-main.ts', import.meta.url);

export interface ServeSqliteOptions {
  /** The file of another server, to share one database. */
  readonly file?: string;
  readonly groupLeaseMs?: number;
}

export async function serveSqlite(options: ServeSqliteOptions = {}): Promise<ServedSqlite> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-served-'));
  const reserved = await reservePort();
  const { host, port } = reserved;
  const input: ServedSqliteInput = { file: join(folder, 'events.db'), host, port, ...options };
  let child: Child;
  const start = async (): Promise<void> => {
    child = startChild(script, { input, nodeFlags: ['--expose-gc'] });
    await child.message(hasKind('listening'));
  };
  await start();
  return {
    port,
    file: input.file,
    pid: () => child.pid,
    url: `kurrentdb://${host}:${port}?tls=false&discoveryInterval=1`,
    async kill() {
      await child.kill('SIGKILL');
    },
    startAgain: start,
    async usage() {
      const before = child.messages.filter(hasKind('usage')).length;
      child.send({ kind: 'usage' });
      return child.message((message): message is Usage => {
        const all = child.messages.filter(hasKind('usage'));
        return all.length > before && all.at(-1) === message;
      });
    },
    async [Symbol.asyncDispose]() {
      await child.kill('SIGKILL');
      await rm(folder, { recursive: true, force: true });
      await reserved[Symbol.asyncDispose]();
    },
  };
}

function hasKind<K extends ServedSqliteMessage['kind']>(kind: K) {
  return (message: unknown): message is Extract<ServedSqliteMessage, { readonly kind: K }> =>
    (message as ServedSqliteMessage).kind === kind;
}
