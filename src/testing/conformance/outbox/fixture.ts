// The fixture of the suite, and helpers of its cases.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { eventually } from '../../assertions.ts';
import type { OutboxCapabilities, OutboxLedger } from '../../../outbox/outbox-ledger.ts';
import type { ClaimedMessage, EnqueueOutboxProps } from '../../../outbox/outbox-message.ts';

/** An isolated ledger, which the suite disposes. */
export interface OpenedLedger<Transaction> {
  readonly ledger: OutboxLedger<Transaction>;
  /** Opens a second connection to the same data, like another process (`crossProcess`). */
  second?(): Promise<OutboxLedger<Transaction>>;
  /** Runs the work in a new transaction, and rolls it back when the work throws (`callerTransaction`). */
  inTransaction?(work: (transaction: Transaction) => Promise<void>): Promise<void>;
  /** Drops the tables of the database (`durable`). */
  outage?(): Promise<void>;
  /** Replaces the stored text of a message without the ledger (`durable`). */
  damage?(id: string, column: 'payload' | 'headers', text: string): Promise<void>;
  /** The rows of the view `integration_outbox` (`durable`). */
  readRelation?(): Promise<readonly Readonly<Record<string, unknown>>[]>;
  close?(): Promise<void>;
}

export interface OutboxLedgerFixture<Transaction> {
  /** The capabilities of the adapter; cases that need others are skipped. */
  readonly capabilities: OutboxCapabilities;
  /** Returns an empty instance each time. */
  open(): Promise<OpenedLedger<Transaction>>;
}

export interface OutboxLedgerCase {
  /** The topic, followed by a sentence. */
  readonly name: string;
  /** Why the case is skipped: `needs crossProcess`. */
  readonly skip?: string | undefined;
  /** Rejects if the adapter fails the case. */
  readonly run: () => Promise<void>;
}

export type LedgerCases = Readonly<
  Record<string, (opened: OpenedLedger<unknown>, ledger: OutboxLedger) => Promise<void>>
>;

/** A time limit that is long enough for any machine. */
export const leaseMs = 600_000;

export function newMessage(fields: Partial<EnqueueOutboxProps> = {}): EnqueueOutboxProps {
  return {
    sourceStreamId: 'paymenthub.payment.v1-core-p1',
    sourceEventId: randomUUID(),
    integrationType: 'webhook:partner-x',
    eventType: 'payment.completed.v1',
    payload: { paymentId: 'p1' },
    ...fields,
  };
}

export async function enqueued(
  ledger: OutboxLedger,
  ...fields: readonly Partial<EnqueueOutboxProps>[]
): Promise<readonly string[]> {
  const all = await ledger.enqueueMany(fields.map(newMessage));
  for (const { isDuplicate } of all) assert.equal(isDuplicate, false);
  return all.map(({ id }) => id);
}

export function claim(ledger: OutboxLedger, limit = 100): Promise<readonly ClaimedMessage[]> {
  return ledger.claimDueBatch('worker', limit, { leaseMs });
}

export async function claimOne(ledger: OutboxLedger): Promise<ClaimedMessage> {
  const [claimed, ...more] = await claim(ledger);
  assert.ok(claimed !== undefined, 'no message was available');
  assert.deepEqual(more, []);
  return claimed;
}

/** A claim whose lease expires at once. */
export async function claimAndDie(ledger: OutboxLedger): Promise<ClaimedMessage> {
  const [claimed] = await ledger.claimDueBatch('dying', 1, { leaseMs: 1 });
  assert.ok(claimed !== undefined, 'no message was available');
  return claimed;
}

export async function claimAgain(ledger: OutboxLedger): Promise<ClaimedMessage> {
  let claimed: readonly ClaimedMessage[] = [];
  await eventually('the message can be claimed again', async () => {
    claimed = await claim(ledger);
    return claimed.length > 0;
  });
  return claimed[0] as ClaimedMessage;
}

export async function statusOf(ledger: OutboxLedger, id: string): Promise<string | undefined> {
  return (await ledger.find(id))?.status;
}

/** A time before the time of every clock. */
export const past = new Date('2020-01-01T00:00:00.000Z');
/** A time after the time of every clock. */
export const future = new Date('2100-01-01T00:00:00.000Z');
