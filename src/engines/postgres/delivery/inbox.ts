// The inbox of a message consumer in PostgreSQL: deduplicates messages inside the consumer's transaction.

import type { Pool, PoolClient } from 'pg';
import {
  checkMessageId,
  inboxLimits,
  inboxSettings,
  type InboxOptions,
  type InboxResult,
} from '../../../delivery/inbox.ts';
import { createIfMissing, inTransaction } from '../connection/connection.ts';

/** A `pg` client inside a transaction, or any object that runs SQL there. */
export interface InboxClient {
  query(sql: string, values?: unknown[]): Promise<{ readonly rowCount: number | null }>;
}

export interface PostgresInbox {
  /** Creates the table if it is missing. */
  migrate(client: InboxClient): Promise<void>;
  /**
   * Stores the id and returns whether it was stored before. Call it first in your transaction. Another transaction with the
   * same id waits here until yours ends.
   */
  isDuplicate(client: InboxClient, messageId: string): Promise<boolean>;
  /** Begins a transaction and runs the effect in it, unless the message is a duplicate. */
  once<T>(
    pool: Pool,
    messageId: string,
    effect: (client: PoolClient) => Promise<T>,
  ): Promise<InboxResult<T>>;
  /** Deletes ids older than `ttlMs`, oldest first; returns their number. Run it periodically. */
  clean(client: InboxClient): Promise<number>;
}

/**
 * Deduplicates received messages by their ids: `webhook-id`, `Idempotency-Key`.
 *
 * @example
 * import pg from 'pg';
 * import { postgresInbox } from 'millrace/engines/postgres';
 *
 * const pool = new pg.Pool();
 * const inbox = postgresInbox({ consumer: 'invoices' });
 * await inbox.migrate(pool);
 * const { kind } = await inbox.once(pool, 'msg_1', (client) =>
 *   client.query('insert into invoices (id) values ($1)', ['i-1']),
 * );
 * console.log(kind); // handled, or duplicate
 */
export function postgresInbox(options: InboxOptions = {}): PostgresInbox {
  const { table: name, consumer, ttlMs } = inboxSettings(options);
  const table = name.quoted;

  async function isDuplicate(client: InboxClient, messageId: string): Promise<boolean> {
    checkMessageId(messageId);
    const { rowCount } = await client.query(
      `insert into ${table} (consumer, message_id) values ($1, $2) on conflict do nothing`,
      [consumer, messageId],
    );
    return rowCount === 0;
  }

  return {
    isDuplicate,
    async migrate(client) {
      await createIfMissing(
        client,
        'inbox',
        `create table if not exists ${table} (
           consumer text not null,
           message_id text not null,
           received_at timestamptz not null default clock_timestamp(),
           primary key (consumer, message_id)
         );
         create index if not exists "${name.bare}_received_at" on ${table} (consumer, received_at)`,
      );
    },
    async once(pool, messageId, effect) {
      checkMessageId(messageId);
      return inTransaction(pool, async (client) =>
        (await isDuplicate(client, messageId))
          ? { kind: 'duplicate' }
          : { kind: 'handled', result: await effect(client) },
      );
    },
    async clean(client) {
      let total = 0;
      for (;;) {
        const { rowCount } = await client.query(
          `delete from ${table} where ctid = any (array(
             select ctid from ${table}
             where consumer = $1 and received_at < clock_timestamp() - $2 * interval '1 millisecond'
             order by received_at limit $3 for update skip locked))`,
          [consumer, ttlMs, inboxLimits.cleanBatch],
        );
        total += rowCount ?? 0;
        if ((rowCount ?? 0) < inboxLimits.cleanBatch) return total;
      }
    },
  };
}
