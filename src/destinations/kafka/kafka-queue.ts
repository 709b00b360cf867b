// What waits to be published: calls that come at about the same time share a request. One flight at a time,
// so that records keep the order in which they came; what comes meanwhile is the next flight.

import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { KafkaRecord } from './kafka-record.ts';

export interface KafkaQueue {
  /** Goes out as one, in its order; answers early when the signal fires. Never rejects. */
  publish(
    records: readonly KafkaRecord[],
    signal: AbortSignal,
  ): Promise<readonly DeliveryOutcome[]>;
  /** Takes nothing more, and resolves when nothing is under way. */
  close(): Promise<void>;
}

export interface KafkaQueueOptions {
  readonly clock: Clock;
  /** How long the first of a flight waits for others. */
  readonly lingerMs: number;
  readonly recordsMax: number;
  readonly bytesMax: number;
  /** One outcome for each, in their order; never rejects. */
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
  const full = { records: 0, bytes: 0 };
  let lingering: AbortController | undefined;
  let flying: Promise<void> | undefined;
  let isClosed = false;

  function add(unit: Unit): void {
    waiting.add(unit);
    full.records += unit.records.length;
    full.bytes += unit.bytes;
    if (full.records >= recordsMax || full.bytes >= bytesMax) lingering?.abort();
    flying ??= fly();
  }

  function remove(unit: Unit): boolean {
    if (!waiting.delete(unit)) return false;
    full.records -= unit.records.length;
    full.bytes -= unit.bytes;
    return true;
  }

  async function fly(): Promise<void> {
    if (full.records < recordsMax && full.bytes < bytesMax) {
      lingering = new AbortController();
      // It rejects when it is not to wait any longer.
      await clock.sleep(lingerMs, lingering.signal).catch(() => undefined);
      lingering = undefined;
    }
    while (waiting.size > 0) {
      const units = nextFlight();
      const outcomes = await send(units.flatMap(({ records }) => records));
      let at = 0;
      for (const { records, resolve } of units) {
        resolve(outcomes.slice(at, at + records.length));
        at += records.length;
      }
    }
    flying = undefined;
  }

  /** Never none: a unit above the bounds flies alone, and is cut into requests behind this. */
  function nextFlight(): readonly Unit[] {
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
        const onAbort = (): void => unit.resolve(all(remove(unit) ? cancelled : left));
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
      await flying;
    },
  };
}

function notSent(error: string): DeliveryOutcome {
  return { kind: 'retry', error, attempted: false };
}

const cancelled = notSent('the attempt was cancelled before it was sent');
const left: DeliveryOutcome = {
  kind: 'retry',
  error: 'the attempt was cancelled',
  ambiguous: true,
};
