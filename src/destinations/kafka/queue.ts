// Batches concurrent calls into shared requests. Only one batch is in flight, so records keep their order; calls during
// a flight form the next batch.

import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { KafkaRecord } from './record.ts';

export interface KafkaQueue {
  /** Publishes the records in one batch, in their order. Resolves early if the signal fires; never rejects. */
  publish(
    records: readonly KafkaRecord[],
    signal: AbortSignal,
  ): Promise<readonly DeliveryOutcome[]>;
  /** Rejects further records, and resolves when no batch is in flight. */
  close(): Promise<void>;
}

export interface KafkaQueueOptions {
  readonly clock: Clock;
  /** How long the first call of a batch waits for others. */
  readonly lingerMs: number;
  readonly recordsMax: number;
  readonly bytesMax: number;
  /** Returns one outcome per record, in their order; never rejects. */
  readonly send: (records: readonly KafkaRecord[]) => Promise<readonly DeliveryOutcome[]>;
}

interface Unit {
  readonly records: readonly KafkaRecord[];
  readonly bytes: number;
  readonly resolve: (outcomes: readonly DeliveryOutcome[]) => void;
}

export function createKafkaQueue(options: KafkaQueueOptions): KafkaQueue {
  const { clock, lingerMs, recordsMax, bytesMax, send } = options;
  const waiting = new Set<Unit>();
  const queued = { records: 0, bytes: 0 };
  let lingering: AbortController | undefined;
  let inFlight: Promise<void> | undefined;
  let isClosed = false;

  function add(unit: Unit): void {
    waiting.add(unit);
    queued.records += unit.records.length;
    queued.bytes += unit.bytes;
    if (queued.records >= recordsMax || queued.bytes >= bytesMax) lingering?.abort();
    inFlight ??= flush();
  }

  function remove(unit: Unit): boolean {
    if (!waiting.delete(unit)) return false;
    queued.records -= unit.records.length;
    queued.bytes -= unit.bytes;
    return true;
  }

  async function flush(): Promise<void> {
    if (queued.records < recordsMax && queued.bytes < bytesMax) {
      lingering = new AbortController();
      // The sleep ends early when the batch is full or the queue closes.
      await clock.sleep(lingerMs, lingering.signal).catch(() => undefined);
      lingering = undefined;
    }
    while (waiting.size > 0) {
      const units = nextBatch();
      const outcomes = await send(units.flatMap(({ records }) => records));
      let at = 0;
      for (const { records, resolve } of units) {
        resolve(outcomes.slice(at, at + records.length));
        at += records.length;
      }
    }
    inFlight = undefined;
  }

  /** Never empty: a call above the bounds is a batch by itself, and the publisher splits it into requests. */
  function nextBatch(): readonly Unit[] {
    const units: Unit[] = [];
    let [records, bytes] = [0, 0];
    for (const unit of waiting) {
      records += unit.records.length;
      bytes += unit.bytes;
      if (units.length > 0 && (records > recordsMax || bytes > bytesMax)) break;
      units.push(unit);
      remove(unit);
    }
    return units;
  }

  return {
    publish(records, signal) {
      if (records.length === 0) return Promise.resolve([]);
      const all = (outcome: DeliveryOutcome) => records.map(() => outcome);
      if (signal.aborted) return Promise.resolve(all(notSent('the attempt was cancelled')));
      if (isClosed) return Promise.resolve(all(notSent('the destination is closed')));
      return new Promise((resolve) => {
        const bytes = records.reduce((sum, record) => sum + record.bytes, 0);
        const unit: Unit = {
          records,
          bytes,
          resolve(outcomes) {
            signal.removeEventListener('abort', onAbort);
            resolve(outcomes);
          },
        };
        const onAbort = (): void =>
          unit.resolve(all(remove(unit) ? cancelledInQueue : cancelledInFlight));
        signal.addEventListener('abort', onAbort, { once: true });
        add(unit);
      });
    },
    async close() {
      isClosed = true;
      lingering?.abort();
      for (const unit of waiting) {
        remove(unit);
        unit.resolve(unit.records.map(() => notSent('the destination is closed')));
      }
      await inFlight;
    },
  };
}

function notSent(error: string): DeliveryOutcome {
  return { kind: 'retry', error, attempted: false };
}

const cancelledInQueue = notSent('the attempt was cancelled before it was sent');
const cancelledInFlight: DeliveryOutcome = {
  kind: 'retry',
  error: 'the attempt was cancelled',
  ambiguous: true,
};
