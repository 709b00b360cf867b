// Checks of `doctor` for an SQLite file: its folder, its disk and its content.

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

/** Linux file systems, by magic number, on which a write-ahead log does not work or nothing is durable. */
const fileSystems: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS: its locks and shared memory do not work across machines'],
  [0xff53_4d42, 'CIFS: its locks and shared memory do not work across machines'],
  [0xfe53_4d42, 'SMB: its locks and shared memory do not work across machines'],
  [0x0102_1994, 'tmpfs: its content is lost at a reboot'],
]);

/** Writes a temporary file next to the database, and deletes it. */
export async function examineSqlite(
  url: string,
  { timeoutMs }: Examination,
): Promise<readonly Finding[]> {
  const path = pathOf(url);
  const folder = nearestFolder(dirname(path));
  const run = (check: string, work: () => Promise<readonly Finding[]>) =>
    examine(check, work, { timeoutMs }, remedyOf);
  const reached = await run('reachable', async () => checkAccess(path, folder));
  if (isBroken(reached)) return reached;
  return [
    ...reached,
    ...(await run('disk', () => disk(folder))),
    ...(existsSync(path) ? await run('read', async () => [await readFinding(path)]) : []),
    ...(await run('durable write', async () => [await durableWrite(folder)])),
  ];
}

/** The nearest existing folder: the missing folders below it are created when the store opens. */
function nearestFolder(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearestFolder(dirname(folder));
}

function checkAccess(path: string, folder: string): readonly Finding[] {
  accessSync(folder, constants.W_OK);
  const exists = existsSync(path);
  if (exists) accessSync(path, constants.R_OK | constants.W_OK);
  const database = exists
    ? new DatabaseSync(path, { readOnly: true })
    : new DatabaseSync(':memory:');
  try {
    const version = String(database.prepare('select sqlite_version() as v').get()?.['v']);
    if (exists) database.prepare('select count(*) from sqlite_schema').get();
    return [
      { check: 'reachable', level: 'ok', detail: exists ? path : `${path} will be created` },
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
  const remedy = 'Free disk space: on a full disk, appends fail.';
  const found: Finding[] = [
    freeMiB >= freeMiBMin
      ? { check: 'disk', level: 'ok', detail }
      : { check: 'disk', level: 'warning', detail, remedy },
  ];
  const problem = fileSystems.get(type);
  if (problem !== undefined) {
    const local = 'Put the file on a local disk.';
    found.push({ check: 'file system', level: 'warning', detail: problem, remedy: local });
  }
  return found;
}

async function readFinding(path: string): Promise<Finding> {
  using database = new DatabaseSync(path, { readOnly: true });
  const statement = database.prepare('select count(*) from sqlite_schema');
  const ms = await medianMs(async () => statement.get());
  return latencyFinding('read', ms, { slowMs: 20, remedy: 'Check the disk of the file.' });
}

/** Measures a synced write, which every commit waits for, in a temporary file. */
async function durableWrite(folder: string): Promise<Finding> {
  // A unique name: two databases in one folder may be checked at the same time.
  const path = join(folder, `.millrace-doctor-${randomUUID()}`);
  const file = await open(path, 'wx');
  try {
    const page = Buffer.alloc(4_096);
    const ms = await medianMs(async () => {
      await file.write(page);
      await file.datasync();
    });
    const remedy = 'Use a faster disk: each commit waits for it.';
    return latencyFinding('durable write', ms, { slowMs: 50, remedy });
  } finally {
    await file.close();
    await unlink(path);
  }
}

function remedyOf(error: unknown): string | undefined {
  const text = error instanceof Error ? error.message : '';
  if (/EACCES|EPERM|EROFS|readonly/i.test(text)) {
    return 'Give this user write permission for the file and its folder.';
  }
  if (/ENOSPC/.test(text)) return 'Free disk space.';
  if (/not a database|malformed/i.test(text)) {
    return 'The file is damaged or not an SQLite database: use another file, or restore a backup.';
  }
  return undefined;
}
