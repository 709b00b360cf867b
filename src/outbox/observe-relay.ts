// What a stream relay tells the outside: one line for a batch, and one for each message that failed.

import type { Observer, Span } from '../foundation/observer.ts';
import { traceOf } from '../foundation/trace-of.ts';
import { logOutbox } from './observe-outbox.ts';
import type { ClaimedMessage } from './outbox-message.ts';
import type { LaneBatch, LaneOutcome } from './outbox-streams.ts';

export interface RelayObserver {
  start(batch: LaneBatch, count: number): void;
  end(batch: LaneBatch, durationMs: number): void;
  settled(batch: LaneBatch, outcome: LaneOutcome, isSettled: boolean): void;
  exchanged(batches: readonly LaneBatch[], durationMs: number): void;
  failed(error: unknown): void;
}

const source = 'outbox-stream-relay';

export function observeRelay(
  observer: Observer,
  onDead?: (message: ClaimedMessage, error: string) => void | Promise<void>,
): RelayObserver {
  /** A batch has many parents: its span is linked to them. */
  const spans = new WeakMap<LaneBatch, Span>();
  const laneOf = ({ claim }: LaneBatch): object => ({
    integrationType: claim.integrationType,
    lane: claim.lane,
    epoch: claim.epoch,
  });

  async function tellDead(message: ClaimedMessage, error: string): Promise<void> {
    try {
      await onDead?.(message, error);
    } catch (err) {
      observer.log?.error({ outboxId: message.id, err }, 'onDead failed');
    }
  }

  return {
    start(batch, count) {
      const what = { source, operation: 'OUTBOX_DIRECT_SEND', phase: 'START' } as const;
      logOutbox(observer, what, {}, { ...laneOf(batch), count });
      if (observer.span === undefined) return;
      const { integrationType } = batch.claim;
      const links = batch.items
        .map(({ message }) => traceOf(message.headers))
        .filter((each) => each !== undefined);
      const attributes = { integrationType, events: count };
      spans.set(batch, observer.span('deliver message', attributes, undefined, links));
    },
    end(batch, durationMs) {
      const { integrationType } = batch.claim;
      spans.get(batch)?.end();
      observer.record?.('outbox_delivery_duration_ms', durationMs, { integrationType });
    },
    settled(batch, { upTo, changes }, isSettled) {
      const { integrationType } = batch.claim;
      const attributes = { integrationType };
      const what = { source, operation: 'OUTBOX_DELIVER' } as const;
      if (!isSettled) {
        logOutbox(observer, { ...what, phase: 'STALE' }, {}, laneOf(batch));
        return observer.count?.('outbox_stale_total', attributes, batch.items.length);
      }
      const byPosition = new Map(batch.items.map((item) => [item.position, item]));
      const fresh = upTo === undefined ? [] : batch.items.filter(({ isParked }) => !isParked);
      let sent = fresh.length;
      for (const change of changes) {
        const item = byPosition.get(change.position);
        if (item === undefined) continue;
        if (!item.isParked) sent -= 1;
        else if (change.kind === 'sent') sent += 1;
        if (change.kind !== 'failed' && change.kind !== 'dead') continue;
        const { message } = item;
        const phase = change.kind === 'dead' ? 'DEAD' : 'FAILED';
        const more = { outboxId: message.id, integrationType, error: change.error };
        logOutbox(observer, { ...what, phase }, message, more);
        if (change.kind === 'failed') observer.count?.('outbox_failed_total', attributes);
        else {
          observer.count?.('outbox_dead_total', attributes);
          void tellDead(message, change.error);
        }
      }
      if (sent === 0) return;
      logOutbox(observer, { ...what, phase: 'SENT' }, {}, { ...laneOf(batch), count: sent });
      observer.count?.('outbox_sent_total', attributes, sent);
    },
    exchanged(batches, durationMs) {
      const claimed = batches.reduce((sum, { items }) => sum + items.length, 0);
      if (claimed > 0) observer.count?.('outbox_claimed_total', {}, claimed);
      observer.record?.('outbox_claim_duration_ms', durationMs, {});
    },
    failed(error) {
      const what = { source, operation: 'OUTBOX_CLAIM', phase: 'ERROR' } as const;
      logOutbox(observer, what, {}, { err: error });
    },
  };
}
