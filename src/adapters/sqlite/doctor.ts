// Whether a file can be an event store: its folder, its disk, and what it holds already.

import { randomUUID } from 'node:crypto';
import { accessSync, constants, existsSync } from 'node:fs';
import { open, statfs, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  examine,
  isBroken,
  latencyFinding,
  medianMs,
  versionFinding,
  type Examination,
  type Finding,
} from '../../foundation/finding.ts';
import { pathOf } from './connection/path.ts';

const versionLeast = '3.38';
const freeMiBMin = 256;

/** Of Linux, by their magic numbers: those where a write-ahead log does not work, or nothing stays. */
const fileSystems: ReadonlyMap<number, readonly [name: string, problem: string]> = new Map([
  [0x6969, ['NFS', 'its locks and its shared memory do not hold']],
  [0xff53_4d42, ['CIFS', 'its locks and its shared memory do not hold']],
  [0xfe53_4d42, ['SMB', 'its locks and its shared memory do not hold']],
  [0x0102_1994, ['tmpfs', 'a reboot forgets everything']],
]);

/** Writes one file of its own beside the database, which is gone at the end. */
export async function examineSqlite(
  url: string,
  { timeoutMs }: Examination,
): Promise<readonly Finding[]> {
  const path = pathOf(url);
  const folder = nearestFolder(dirname(path));
  const look = (check: string, work: () => Promise<readonly Finding[]>) =>
    examine(check, work, { timeoutMs }, remedyOf);
  const reached = await look('reachable', async () => reach(path, folder));
  if (isBroken(reached)) return reached;
  return [
    ...reached,
    ...(await look('disk', () => disk(folder))),
    ...(existsSync(path) ? await look('read', async () => [await readFinding(path)]) : []),
    ...(await look('durable write', async () => [await durableWrite(folder)])),
  ];
}

/** The one that is there: what is missing below it is made at the start. */
function nearestFolder(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearestFolder(dirname(folder));
}

function reach(path: string, folder: string): readonly Finding[] {
  accessSync(folder, constants.W_OK);
  const isThere = existsSync(path);
  if (isThere) accessSync(path, constants.R_OK | constants.W_OK);
  const database = isThere
    ? new DatabaseSync(path, { readOnly: true })
    : new DatabaseSync(':memory:');
  try {
    const version = String(database.prepare('select sqlite_version() as v').get()?.['v']);
    if (isThere) database.prepare('select count(*) from sqlite_schema').get();
    return [
      { check: 'reachable', level: 'ok', detail: isThere ? path : `${path} will be made` },
      versionFinding('SQLite', version, versionLeast),
    ];
  } finally {
    database.close();
  }
}

async function disk(folder: string): Promise<readonly Finding[]> {
  const { type, bavail, bsize } = await statfs(folder);
  const freeMiB = Math.floor((bavail * bsize) / 1_048_576);
  const detail = `${freeMiB} MiB free`;
  const remedy = 'Make room: a full disk refuses appends.';
  const [name, problem] = fileSystems.get(type) ?? [];
  return [
    freeMiB >= freeMiBMin
      ? { check: 'disk', level: 'ok', detail }
      : { check: 'disk', level: 'warning', detail, remedy },
    ...(name === undefined
      ? []
      : [
          {
            check: 'file system',
            level: 'warning',
            detail: `${name}: ${problem ?? ''}`,
            remedy: 'Put the file on a disk of this machine.',
          } as const,
        ]),
  ];
}

async function readFinding(path: string): Promise<Finding> {
  using database = new DatabaseSync(path, { readOnly: true });
  const statement = database.prepare('select count(*) from sqlite_schema');
  const ms = await medianMs(async () => statement.get());
  return latencyFinding('read', ms, { slowMs: 20, remedy: 'Look at the disk of the file.' });
}

/** What a commit waits for, in a file of its own. */
async function durableWrite(folder: string): Promise<Finding> {
  // A name for each look: two databases of one folder are looked at together.
  const path = join(folder, `.millrace-doctor-${randomUUID()}`);
  const file = await open(path, 'wx');
  try {
    const page = Buffer.alloc(4_096);
    const ms = await medianMs(async () => {
      await file.write(page);
      await file.datasync();
    });
    const remedy = 'Take a faster disk: each commit waits for it.';
    return latencyFinding('durable write', ms, { slowMs: 50, remedy });
  } finally {
    await file.close();
    await unlink(path);
  }
}

function remedyOf(error: unknown): string | undefined {
  const text = error instanceof Error ? error.message : '';
  if (/EACCES|EPERM|EROFS|readonly/i.test(text)) {
    return 'Give the user that runs this the right to write the file and its folder.';
  }
  if (/ENOSPC/.test(text)) return 'Make room on the disk.';
  if (/not a database|malformed/i.test(text)) {
    return 'It is another kind of file, or damaged: name another one, or bring back a copy.';
  }
  return undefined;
}
