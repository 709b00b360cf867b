// The inbox of a receiver on SQLite, in the receiver's transaction and on its connection.

import type { DatabaseSync } from 'node:sqlite';
import {
  checkMessageId,
  inboxLimits,
  inboxSettings,
  type InboxOptions,
  type InboxResult,
} from '../../../delivery/inbox.ts';
import { systemClock, type Clock } from '../../../foundation/clock.ts';
import { MillraceError } from '../../../foundation/error.ts';

export interface SqliteInboxOptions extends InboxOptions {
  readonly clock?: Clock | undefined;
}

export interface SqliteInbox {
  /** Creates a missing table. */
  migrate(database: DatabaseSync): void;
  /** Stores the id and returns whether it was stored before. Call it inside your transaction (`begin immediate`). */
  isDuplicate(database: DatabaseSync, messageId: string): boolean;
  /**
   * Begins a transaction and runs the effect in it, unless the message was handled before. The effect must be
   * synchronous: otherwise other work could use the same connection while the effect waits.
   */
  once<T>(database: DatabaseSync, messageId: string, effect: () => T): InboxResult<T>;
  /** Deletes ids older than `ttlMs`, oldest first, and returns their number. Run it periodically. */
  clean(database: DatabaseSync): number;
}

/**
 * Dedupes received messages by their ids: `webhook-id`, `Idempotency-Key`.
 *
 * @example
 * import { DatabaseSync } from 'node:sqlite';
 * import { sqliteInbox } from 'millrace/engines/sqlite';
 *
 * const database = new DatabaseSync('app.db', { timeout: 5_000 });
 * const inbox = sqliteInbox({ consumer: 'invoices' });
 * inbox.migrate(database);
 * const { kind } = inbox.once(database, 'msg_1', () =>
 *   database.prepare('insert into invoices (id) values (?)').run('i-1'),
 * );
 * console.log(kind); // handled, or duplicate
 */
export function sqliteInbox(options: SqliteInboxOptions = {}): SqliteInbox {
  const { table: name, consumer, ttlMs } = inboxSettings(options);
  const table = name.quoted;
  const { clock = systemClock } = options;

  function isDuplicate(database: DatabaseSync, messageId: string): boolean {
    checkMessageId(messageId);
    const { changes } = database
      .prepare(
        `insert into ${table} (consumer, message_id, received_at_ms) values (?, ?, ?)
         on conflict do nothing`,
      )
      .run(consumer, messageId, clock.now());
    return Number(changes) === 0;
  }

  return {
    isDuplicate,
    migrate(database) {
      database.exec(
        `create table if not exists ${table} (
           consumer text not null,
           message_id text not null,
           received_at_ms integer not null,
           primary key (consumer, message_id)
         ) without rowid;
         create index if not exists "${name.bare}_received_at" on ${table} (consumer, received_at_ms);`,
      );
    },
    once(database, messageId, effect) {
      checkMessageId(messageId);
      // Take the write lock before reading: if two transactions have read, only one of them can write.
      database.exec('begin immediate');
      try {
        const done = isDuplicate(database, messageId) ? undefined : { result: effect() };
        if (isPromise(done?.result)) {
          throw new MillraceError('NOT_SUPPORTED', 'an inbox effect on SQLite must be synchronous');
        }
        database.exec('commit');
        return done === undefined ? { kind: 'duplicate' } : { kind: 'handled', ...done };
      } catch (error) {
        // After some errors, such as a full disk, SQLite has already rolled back.
        if (database.isTransaction) database.exec('rollback');
        throw error;
      }
    },
    clean(database) {
      const statement = database.prepare(
        `delete from ${table} where (consumer, message_id) in (
           select consumer, message_id from ${table}
           where consumer = ? and received_at_ms < ? order by received_at_ms limit ?)`,
      );
      let total = 0;
      for (;;) {
        const { changes } = statement.run(consumer, clock.now() - ttlMs, inboxLimits.cleanBatch);
        total += Number(changes);
        if (Number(changes) < inboxLimits.cleanBatch) return total;
      }
    },
  };
}

function isPromise(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'then' in value;
}
