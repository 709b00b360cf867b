// Defines a saga: a state machine per key that sends commands and compensates them on failure.

import type { NewCommand } from '../contracts/define-command.ts';
import type { EventOf } from '../contracts/define-event.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import type { Identifier } from '../contracts/identifier.ts';
import { eventFlowBackoff, type BackoffPolicy } from '../foundation/backoff.ts';
import { MillraceError } from '../foundation/error.ts';
import { buildSubscriptionName } from '../contracts/subscription-name.ts';
import { encodePayload } from '../contracts/json-payload.ts';
import type { EventFilter } from '../store/event-filter.ts';
import type { Position } from '../store/position.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import type { EventNamed, RecordedEventOf } from './reaction.ts';
import type { ReactorFilter, ReactorTuning } from './reactor.ts';
import { sagaCategory, sagaTypes, type SagaName, type SagaRequest } from './saga-fact.ts';
import type { SagaStepStatus } from './saga-state.ts';

export const sagaLimits = {
  commandTimeoutMs: 10_000,
  /** Time left for the handler to store the outcome. */
  answerMarginMs: 20_000,
  /** Maximum number of new decisions after conflicts with other processes. */
  conflictRetriesMax: 50,
  /** How often each process polls for timers set by other processes. */
  pollMs: 1_000,
  /** Maximum number of timers fired per poll. */
  timersPerPoll: 100,
  /** 100 years: a longer time is probably a mistake in the unit. */
  timerMsMax: 100 * 365 * 86_400_000,
  listMax: 1_000,
  /** Maximum number of idle sagas that a process remembers. */
  settledMax: 10_000,
  /** Sagas written concurrently when an index is rebuilt. */
  fillAtOnce: 16,
} as const;

/** The timer of `expiresAfterMs`; timer names of users cannot contain `$`. */
export const expiryTimer = '$expiry';

/** The input of a decision. */
export interface SagaView<Data = unknown> {
  readonly tenant: string;
  readonly key: string;
  readonly data: Data;
  readonly nowMs: number;
  readonly correlationId: string;
  /** The steps so far, in the order of their requests. */
  readonly steps: readonly { readonly step: string; readonly status: SagaStepStatus }[];
}

/** Decided by a pure function, stored as an event, then carried out. */
export type SagaAction<Data, Step extends string, Timer extends string> =
  /** Sends a command; the step is done when it is accepted. */
  | {
      readonly run: Step;
      readonly id: string;
      readonly command: NewCommand;
      /** The category of the aggregate, if several accept this command type: `banking.account.v2`. */
      readonly aggregate?: string | undefined;
      /** Default: the saga's. */
      readonly tenant?: string | undefined;
    }
  /** Replaces the saga's data, which must be JSON. */
  | { readonly data: Data }
  /** Sets or resets the timer. */
  | { readonly timer: Timer; readonly afterMs: number }
  | { readonly cancel: Timer }
  /** Completes when all steps have an outcome; if one is denied, the saga is compensated instead. */
  | { readonly end: 'completed' }
  /** Compensates all completed steps, last step first. */
  | { readonly end: 'failed'; readonly reason: string };

export type SagaActions<Data, Step extends string, Timer extends string> =
  | readonly SagaAction<Data, Step, Timer>[]
  | undefined;

/** The command that undoes a step; undefined: there is nothing to undo. */
export type Compensation =
  | {
      readonly id: string;
      readonly command: NewCommand;
      readonly aggregate?: string;
      readonly tenant?: string;
    }
  | undefined;

export interface StepDenial {
  readonly kind: 'rejected' | 'failed';
  readonly reason: string;
  readonly message: string;
}

export interface SagaStep<Data, Step extends string, Timer extends string> {
  readonly onDone?: ((view: SagaView<Data>) => SagaActions<Data, Step, Timer>) | undefined;
  /** Default: the saga fails and is compensated. */
  readonly onDenied?:
    | ((view: SagaView<Data>, denial: StepDenial) => SagaActions<Data, Step, Timer>)
    | undefined;
  /** Absent: the step needs no compensation. */
  readonly compensate?: (view: SagaView<Data>, sent: SagaRequest) => Compensation;
}

export type SagaEventMap<
  Event extends NewEvent,
  Data,
  Step extends string,
  Timer extends string,
> = {
  readonly [Type in Event['type']]: (
    event: RecordedEventOf<Extract<Event, { readonly type: Type }>>,
    view: SagaView<Data>,
  ) => SagaActions<Data, Step, Timer>;
};

export interface SagaDefinition<
  Bc extends string,
  Name extends string,
  Definitions extends readonly EventNamed[],
  Data,
  Step extends string,
  Timer extends string,
> extends Omit<ReactorTuning, 'timeoutMs'> {
  /** With `name` and `version`: the category of its streams, and `sub:<bc>:<name>:v<version>`. */
  readonly bc: Identifier<Bc>;
  readonly name: Identifier<Name>;
  /** Increase it when running sagas should finish with the old rules. */
  readonly version: number;
  readonly events: Definitions;
  /** Where a new subscription starts: with the first event, or with the next one appended (`end`). */
  readonly from: 'start' | 'end' | Position;
  /** Empty, with `onEarly: 'ignore'`: running sagas finish, and no new one starts. */
  readonly startOn: readonly EventOf<Definitions[number]>['type'][];
  /** The key of the saga that an event belongs to; undefined: none. Each key runs once per tenant. */
  readonly correlateBy: (
    event: RecordedEventOf<EventOf<Definitions[number]>>,
  ) => string | undefined;
  /** The data before the first event. */
  readonly initial: Data;
  readonly on: SagaEventMap<
    EventOf<Definitions[number]>,
    NoInfer<Data>,
    NoInfer<Step>,
    NoInfer<Timer>
  >;
  readonly steps: {
    readonly [Each in Step]: SagaStep<NoInfer<Data>, NoInfer<Step>, NoInfer<Timer>>;
  };
  readonly timers?: {
    readonly [Each in Timer]: (
      view: SagaView<NoInfer<Data>>,
    ) => SagaActions<NoInfer<Data>, NoInfer<Step>, NoInfer<Timer>>;
  };
  /** Time limit from the start; after it, the saga fails and is compensated. */
  readonly expiresAfterMs?: number | undefined;
  /** In addition to the event types. */
  readonly filter?: ReactorFilter | undefined;
  /** An event before the start event is queued until the start (default), or ignored. */
  readonly onEarly?: 'hold' | 'ignore' | undefined;
  /**
   * A step whose command has no outcome after the last attempt: the saga is parked (default), or
   * compensated together with this step, because the command may have taken effect.
   */
  readonly onUnanswered?: 'park' | 'compensate' | undefined;
  /** Time limit of one command attempt. Default: 10 s. */
  readonly commandTimeoutMs?: number | undefined;
}

export type AnyAction = SagaAction<unknown, string, string>;
type AnyActions = SagaActions<unknown, string, string>;
type AnyStep = SagaStep<unknown, string, string>;

/** The checked definition, for `startSaga` and `givenSaga`. */
export interface Saga extends SagaName {
  /** `sub:<bc>:<name>:v<version>`. */
  readonly subscription: string;
  /** Category of its streams. */
  readonly category: string;
  readonly from: 'start' | 'end' | Position;
  /** Selects the external events. */
  readonly filter: EventFilter;
  /** The types of the external events and of the events in its stream. */
  readonly types: readonly string[];
  readonly startOn: ReadonlySet<string>;
  readonly initial: unknown;
  readonly expiresAfterMs: number | undefined;
  readonly onEarly: 'hold' | 'ignore';
  readonly onUnanswered: 'park' | 'compensate';
  readonly commandTimeoutMs: number;
  readonly retry: BackoffPolicy;
  readonly tuning: Omit<ReactorTuning, 'timeoutMs' | 'retry'>;
  readonly steps: ReadonlyMap<string, AnyStep>;
  readonly timers: ReadonlyMap<string, (view: SagaView) => AnyActions>;
  correlate(event: RecordedEvent): string | undefined;
  react(event: RecordedEvent, view: SagaView): AnyActions;
}

/**
 * Defines a saga; `startSaga` runs it, `givenSaga` tests it.
 *
 * @example
 * import { defineCommand, defineEvent } from 'millrace/contracts';
 * import { saga } from 'millrace/reactors';
 * import { z } from 'zod';
 *
 * const order = z.object({ orderId: z.string() });
 * const placed = defineEvent('order.placed.v1', order);
 * const paid = defineEvent('payment.received.v1', order);
 * const reserve = defineCommand('stock.reserve', order);
 * const release = defineCommand('stock.release', order);
 * const ship = defineCommand('parcel.ship', order);
 *
 * const fulfilment = saga({
 *   bc: 'shop',
 *   name: 'fulfilment',
 *   version: 1,
 *   from: 'end',
 *   events: [placed, paid],
 *   startOn: ['order.placed.v1'],
 *   correlateBy: ({ payload }) => payload.orderId,
 *   initial: { orderId: '' },
 *   on: {
 *     'order.placed.v1': ({ payload }) => [
 *       { data: payload },
 *       { run: 'reserve', id: 'main', command: reserve(payload) },
 *       { timer: 'payment', afterMs: 15 * 60_000 },
 *     ],
 *     'payment.received.v1': (_event, { data }) => [
 *       { cancel: 'payment' },
 *       { run: 'ship', id: data.orderId, command: ship(data) },
 *       { end: 'completed' },
 *     ],
 *   },
 *   steps: {
 *     reserve: { compensate: ({ data }) => ({ id: 'main', command: release(data) }) },
 *     ship: {},
 *   },
 *   timers: { payment: () => [{ end: 'failed', reason: 'not paid in time' }] },
 * });
 */
export function saga<
  const Bc extends string,
  const Name extends string,
  const Definitions extends readonly EventNamed[],
  Data,
  const Step extends string,
  const Timer extends string = never,
>(definition: SagaDefinition<Bc, Name, Definitions, Data, Step, Timer>): Saga {
  const { version, events, on, from, startOn, steps, timers, correlateBy, initial } = definition;
  const { expiresAfterMs, onEarly = 'hold', onUnanswered = 'park' } = definition;
  const { commandTimeoutMs = sagaLimits.commandTimeoutMs, retry = eventFlowBackoff } = definition;
  const { lanes, shards, inFlightMax, onDeadLetter = 'park' } = definition;
  const bc = definition.bc as string;
  const name = definition.name as string;
  const id: SagaName = { bc, name, version };
  const subscription = buildSubscriptionName<string, string>(bc, name, version);
  const handlers = new Map(Object.entries(on as Readonly<Record<string, AnyHandler>>));
  const types = events.map(({ type }) => type);

  const fail = (reason: string): never => {
    throw new MillraceError('REACTOR_INVALID', `${subscription} ${reason}`, {
      details: { saga: subscription },
    });
  };
  const unhandled = types.find((type) => !handlers.has(type));
  if (unhandled !== undefined) fail(`has no handler for ${unhandled}`);
  if (startOn.length === 0 && onEarly === 'hold') {
    fail("has an empty startOn: to only finish running sagas, also set onEarly: 'ignore'");
  }
  const foreign = startOn.find((type) => !types.includes(type));
  if (foreign !== undefined) fail(`starts on ${foreign}, which is not one of its events`);
  for (const [field, value] of Object.entries({ commandTimeoutMs, expiresAfterMs })) {
    const isValid = value === undefined || (Number.isSafeInteger(value) && value >= 1);
    if (!isValid) fail(`needs a positive integer as ${field}`);
  }
  encodePayload(initial);

  return {
    ...id,
    subscription,
    category: sagaCategory(id),
    from,
    filter: { ...definition.filter, types },
    types: [...types, ...sagaTypes(id)],
    startOn: new Set<string>(startOn),
    initial,
    expiresAfterMs,
    onEarly,
    onUnanswered,
    commandTimeoutMs,
    retry,
    tuning: { onDeadLetter, lanes, shards, inFlightMax },
    steps: new Map(Object.entries(steps as Readonly<Record<string, AnyStep>>)),
    timers: new Map(
      Object.entries((timers ?? {}) as Readonly<Record<string, (view: SagaView) => AnyActions>>),
    ),
    correlate: (event) => correlateBy(event as Parameters<typeof correlateBy>[0]),
    react: (event, view) => handlers.get(event.type)?.(event, view),
  };
}

type AnyHandler = (event: unknown, view: SagaView) => AnyActions;
