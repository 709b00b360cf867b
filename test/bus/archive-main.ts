// Archives a stream, and kills its own process at one of its calls.

import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { archiveStream } from '../../src/bus/archive.ts';
import type { Bus } from '../../src/bus/bus.ts';
import type { ColdStorage } from '../../src/bus/cold-storage.ts';
import { fileColdStorage } from '../../src/bus/file-cold-storage.ts';
import { childInput } from '../../src/testing/child-process.ts';

const { path, folder, subject, at } = childInput() as {
  readonly path: string;
  readonly folder: string;
  readonly subject: string;
  readonly at: number;
};
let calls = 0;

/** The process can be killed before the call and after it. */
async function killable<T>(call: () => Promise<T>): Promise<T> {
  calls += 1;
  if (calls === at) process.kill(process.pid, 'SIGKILL');
  const result = await call();
  calls += 1;
  if (calls === at) process.kill(process.pid, 'SIGKILL');
  return result;
}

const inner = fileColdStorage(folder);
const storage: ColdStorage = {
  ...inner,
  put: (...args) => killable(() => inner.put(...args)),
  get: (...args) => killable(() => inner.get(...args)),
};
await using db = await openSqlite(path);
const { bus } = db;
const trimming: Pick<Bus, 'readStored' | 'trim'> = {
  readStored: (...args) => bus.readStored(...args),
  trim: (...args) => killable(() => bus.trim(...args)),
};
await archiveStream(trimming, storage, subject, { before: new Date(Date.now() + 86_400_000) });
process.channel?.unref();
