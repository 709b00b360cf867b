// Shared by the saga tests: an engine in memory, an idempotent command receiver, and waiting for a status.

import { openMemory } from '../../../engines/memory/index.ts';
import { CommandRejected } from '../../../aggregates/command-rejected.ts';
import { createEnvelope, type NewEvent } from '../../../contracts/envelope.ts';
import type { EventStore } from '../../../store/event-store.ts';
import { until } from '../subscriptions/rig.ts';
import { fakeClock } from '../../fake-clock.ts';
import type { SendCommand } from '../../../reactors/reaction.ts';
import type { Saga } from '../../../reactors/saga.ts';
import { sagaAdmin } from '../../../reactors/saga-admin.ts';
import type { SagaStatus } from '../../../reactors/saga-state.ts';

type Answer = 'accept' | 'reject' | 'fail' | 'lose-answer';

export interface Receiver {
  readonly send: SendCommand;
  /** Commands that took effect, in order: `stock.reserve o1`. */
  readonly effects: string[];
  /** All received commands, including duplicates. */
  readonly calls: Parameters<SendCommand>[0][];
  /** Sets the replies to the next commands of this type; the last reply stays. */
  answer(type: string, ...answers: readonly Answer[]): void;
}

/** Behaves like an aggregate: a key takes effect once, and a rejected command has no effect. */
export function createReceiver(): Receiver {
  const effects: string[] = [];
  const calls: Parameters<SendCommand>[0][] = [];
  const keys = new Set<string>();
  const planned = new Map<string, Answer[]>();
  const next = (type: string): Answer => {
    const answers = planned.get(type) ?? [];
    return (answers.length > 1 ? answers.shift() : answers[0]) ?? 'accept';
  };
  return {
    effects,
    calls,
    answer: (type, ...answers) => void planned.set(type, [...answers]),
    async send(request) {
      calls.push(request);
      const { command, idempotencyKey = '' } = request;
      await new Promise(setImmediate);
      const answer = next(command.type);
      if (answer === 'fail') throw new Error(`${command.type} is unavailable`);
      if (keys.has(idempotencyKey)) return;
      if (answer === 'reject') throw new CommandRejected('said-no', `${command.type} was rejected`);
      keys.add(idempotencyKey);
      effects.push(`${command.type} ${(command.payload as { orderId: string }).orderId}`);
      if (answer === 'lose-answer') throw new Error('the reply was lost');
    },
  };
}

export async function append(
  store: EventStore,
  event: NewEvent,
  options: {
    readonly stream?: string | undefined;
    readonly subject?: string | undefined;
    readonly eventId?: string | undefined;
    readonly headers?: Readonly<Record<string, unknown>> | undefined;
  } = {},
): Promise<string> {
  const { orderId } = event.payload as { orderId: string };
  const [agg = ''] = event.type.split('.');
  const envelope = createEnvelope(event, {
    tenant: 'core',
    aggregate: { bc: 'shop', type: agg, id: orderId },
    ...(options.eventId === undefined ? {} : { eventId: options.eventId }),
    ...(options.headers === undefined ? {} : { headers: options.headers }),
    ...(options.subject === undefined ? {} : { headers: { dataSubject: options.subject } }),
  });
  await store.append(options.stream ?? `shop.${agg}.v1-core-${orderId}`, [envelope]);
  return envelope.eventId;
}

export function createSagaRig(saga: Saga) {
  const clock = fakeClock();
  const db = openMemory({ clock });
  const receiver = createReceiver();
  const admin = sagaAdmin(db, saga, { clock });
  const at = (key: string) => ({ tenant: 'core', key });
  return {
    clock,
    db,
    receiver,
    admin,
    at,
    options: { send: receiver.send, clock, timerPollMs: 200 },
    /** Waits until the index shows this status. */
    untilStatus: (key: string, status: SagaStatus): Promise<void> =>
      until(clock, async () => {
        const { items: sagas } = await admin.list({ status });
        return sagas.some((each) => each.key === key);
      }),
  };
}
