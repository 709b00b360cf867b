// The receiving side of at-least-once: a message's id is written down in the receiver's own
// transaction, so that its effect and the note of it are there together, or neither is.

import { MillraceError } from '../foundation/error.ts';
import { tableName, type TableName } from './table-name.ts';

export interface InboxOptions {
  /** Default: `millrace_inbox`; with a schema before a dot where the database has schemas. */
  readonly table?: string;
  /** Several handlers of one message each handle it once. Default: `default`. */
  readonly consumer?: string;
  /** How long an id is remembered. Longer than any sender tries, replays by hand included. */
  readonly ttlMs?: number;
}

export type InboxResult<T> =
  | { readonly kind: 'handled'; readonly result: T }
  | { readonly kind: 'duplicate' };

export const inboxLimits = {
  table: 'millrace_inbox',
  consumer: 'default',
  ttlMs: 30 * 24 * 60 * 60_000,
  /** Ids that one statement of a clean-up removes: a short lock, little to undo. */
  cleanBatch: 1_000,
  idCharsMax: 512,
} as const;

export interface InboxSettings {
  readonly table: TableName;
  readonly consumer: string;
  readonly ttlMs: number;
}

/** Throws `CONFIG_INVALID`. */
export function inboxSettings(options: InboxOptions = {}): InboxSettings {
  const { table = inboxLimits.table, consumer = inboxLimits.consumer } = options;
  const { ttlMs = inboxLimits.ttlMs } = options;
  if (consumer === '' || consumer.length > inboxLimits.idCharsMax || !(ttlMs > 0)) {
    throw new MillraceError('CONFIG_INVALID', 'an inbox needs a consumer and a ttlMs above 0');
  }
  return { table: tableName(table), consumer, ttlMs };
}

/** Throws `PAYLOAD_INVALID`: an id that is missing would make all such messages one. */
export function checkMessageId(messageId: string): void {
  if (messageId !== '' && messageId.length <= inboxLimits.idCharsMax && !messageId.includes('\0')) {
    return;
  }
  throw new MillraceError(
    'PAYLOAD_INVALID',
    'the message has no id to dedupe by, or one too long',
    {
      details: { chars: messageId.length },
    },
  );
}
