// The encryption keys of data subjects, in a file next to the events: a backup of the events contains no key. The
// writer thread opens the file at the first key. A key is synced before the first event that it encrypts is written.

import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { eraseFromDisk, truncateLog } from '../connection/schema.ts';
import type { Handlers, Operation, SqlRow } from '../thread/protocol.ts';

export interface KeyOperations {
  /** Stores the keys of subjects that have none, and returns the rows of all these subjects. */
  readonly 'keys.create': Operation<
    { readonly keys: readonly { readonly subject: string; readonly key: Uint8Array }[] },
    readonly SqlRow[]
  >;
  /** Deletes a key and its copies in the log; true if there was one. */
  readonly 'keys.forget': Operation<{ readonly subject: string; readonly nowMs: number }, boolean>;
}

export interface SubjectKeyFile {
  readonly handlers: Handlers<KeyOperations>;
  /** Runs the work, such as several `keys.create`, in one commit. */
  together<T>(work: () => T): T;
  /** Stores rows of an earlier file; a known subject keeps its row. */
  add(rows: readonly SqlRow[]): void;
  close(): void;
}

/** `events.db` → `events.subject-keys.db`. */
export function subjectKeysPath(path: string): string {
  return path.replace(/(\.db)?$/, '.subject-keys.db');
}

const selectKeys = `select subject, key, forgotten_at_ms from subject_keys
  where subject in (select value from json_each(?))`;

/** Opens the file of the keys next to the events, at the first key. */
export function createSubjectKeyFile(
  path: string,
  configure: (database: DatabaseSync) => void,
): SubjectKeyFile {
  const keys = createSubjectKeys(() => {
    // SQLite gives its log the mode of the file.
    closeSync(openSync(path, 'a', 0o600));
    chmodSync(path, 0o600);
    const { DatabaseSync: Connection } = process.getBuiltinModule('node:sqlite');
    const database = new Connection(path);
    try {
      configure(database);
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  });
  // A process that was killed after it deleted a key may have left the key in the log.
  if (existsSync(path)) truncateLog(keys.open());
  return keys;
}

export function createSubjectKeys(
  connect: () => DatabaseSync,
): SubjectKeyFile & { readonly open: () => DatabaseSync } {
  let opened: DatabaseSync | undefined;

  function open(): DatabaseSync {
    if (opened !== undefined) return opened;
    const database = connect();
    try {
      database.exec(
        `create table if not exists subject_keys (
           subject text primary key,
           key blob,
           forgotten_at_ms integer
         ) strict, without rowid`,
      );
    } catch (error) {
      database.close();
      throw error;
    }
    opened = database;
    return database;
  }

  function together<T>(work: () => T): T {
    const database = open();
    database.exec('begin immediate');
    try {
      const result = work();
      database.exec('commit');
      return result;
    } catch (error) {
      if (database.isTransaction) database.exec('rollback');
      throw error;
    }
  }

  return {
    open,
    handlers: {
      'keys.create': ({ keys }) => {
        const insert = open().prepare(
          'insert or ignore into subject_keys (subject, key) values (?, ?)',
        );
        for (const { subject, key } of keys) insert.run(subject, key);
        return rowsOf(
          open(),
          keys.map(({ subject }) => subject),
        );
      },
      'keys.forget': ({ subject, nowMs }) => {
        const database = open();
        const [existing] = together(() => [
          database
            .prepare('select 1 from subject_keys where subject = ? and key is not null')
            .get(subject),
          database
            .prepare(
              `insert into subject_keys (subject, key, forgotten_at_ms) values (?, null, ?)
               on conflict (subject) do update set key = null, forgotten_at_ms = excluded.forgotten_at_ms
               where key is not null`,
            )
            .run(subject, nowMs),
        ]);
        // Also for a subject without a key: an earlier call may have failed here.
        eraseFromDisk(database);
        return existing !== undefined;
      },
    },
    together,
    add(rows) {
      together(() => {
        const insert = open().prepare('insert or ignore into subject_keys values (?, ?, ?)');
        for (const { subject = '', key = null, forgotten_at_ms: at = null } of rows) {
          insert.run(subject, key, at);
        }
      });
    },
    close: () => opened?.close(),
  };
}

export interface SubjectKeyReader {
  rows(subjects: readonly string[]): readonly SqlRow[];
  close(): void;
}

/** Reads keys on the calling thread. `connect` returns undefined while there is no file. */
export function createSubjectKeyReader(connect: () => DatabaseSync | undefined): SubjectKeyReader {
  let opened: DatabaseSync | undefined;
  return {
    rows(subjects) {
      opened ??= openExisting();
      return opened === undefined ? [] : rowsOf(opened, subjects);
    },
    close: () => opened?.close(),
  };

  /** Undefined: another process has created the file, but not yet its table. */
  function openExisting(): DatabaseSync | undefined {
    const database = connect();
    if (database === undefined || hasKeys(database)) return database;
    database.close();
    return undefined;
  }
}

function hasKeys(database: DatabaseSync): boolean {
  const found = database.prepare("select 1 from sqlite_master where name = 'subject_keys'").get();
  return found !== undefined;
}

function rowsOf(database: DatabaseSync, subjects: readonly string[]): readonly SqlRow[] {
  return database.prepare(selectKeys).all(JSON.stringify(subjects)) as unknown as readonly SqlRow[];
}

/**
 * Moves the keys out of an events file of an earlier version. The table stays until no page of the file and its log
 * contains a key, so that the next open continues after a kill.
 */
export function moveSubjectKeys(events: DatabaseSync, keys: SubjectKeyFile): void {
  if (!hasKeys(events)) return;
  events.exec('begin immediate');
  try {
    const rows = events.prepare('select subject, key, forgotten_at_ms from subject_keys').all();
    if (rows.length > 0) {
      keys.add(rows as unknown as readonly SqlRow[]);
      events.exec('update subject_keys set key = null');
    }
    events.exec('commit');
    if (rows.length > 0) {
      // Free space of the file may contain keys that were deleted before `secure_delete` was on.
      events.exec('pragma temp_store = file; vacuum; pragma temp_store = memory');
      eraseFromDisk(events);
    }
    events.exec('drop table if exists subject_keys');
  } catch (error) {
    if (events.isTransaction) events.exec('rollback');
    throw error;
  }
}
