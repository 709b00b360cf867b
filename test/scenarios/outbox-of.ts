import assert from 'node:assert/strict';
import type { OutboxLedger } from '../../src/outbox/index.ts';
import type { Platform } from '../../src/platform/index.ts';

/** The outbox of a platform whose engines have one. */
export function outboxOf({ engines: { outbox } }: Pick<Platform, 'engines'>): OutboxLedger {
  return outbox ?? assert.fail('the platform has no outbox');
}
