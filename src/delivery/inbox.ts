// The receiver's side of at-least-once delivery: the id of a message is stored in the receiver's transaction, together
// with the effect of the message.

import { MillraceError } from '../foundation/error.ts';
import { tableName, type TableName } from './table-name.ts';

export interface InboxOptions {
  /** Default: `millrace_inbox`; may be prefixed with a schema. */
  readonly table?: string | undefined;
  /** Each consumer processes a message once. Default: `default`. */
  readonly consumer?: string | undefined;
  /** How long an id is kept: longer than any sender retries, including manual replays. */
  readonly ttlMs?: number | undefined;
}

export type InboxResult<T> =
  | { readonly kind: 'handled'; readonly result: T }
  | { readonly kind: 'duplicate' };

export const inboxLimits = {
  table: 'millrace_inbox',
  consumer: 'default',
  ttlMs: 30 * 24 * 60 * 60_000,
  /** Ids that one clean-up statement removes, to keep locks short. */
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
    throw new MillraceError(
      'CONFIG_INVALID',
      'invalid inbox: set a consumer, and a ttlMs greater than 0',
    );
  }
  return { table: tableName(table), consumer, ttlMs };
}

/** Throws `PAYLOAD_INVALID`: with a missing id, all such messages would be duplicates of each other. */
export function checkMessageId(messageId: string): void {
  if (messageId !== '' && messageId.length <= inboxLimits.idCharsMax && !messageId.includes('\0')) {
    return;
  }
  throw new MillraceError(
    'PAYLOAD_INVALID',
    'the message id is missing or too long: the inbox cannot detect duplicates',
    {
      details: { chars: messageId.length },
    },
  );
}
