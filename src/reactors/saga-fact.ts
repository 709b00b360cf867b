// The events in a saga's stream. They record what was decided, not why: folding them needs none of the
// user's code, so a changed saga definition can still read old streams.

import type { NewCommand } from '../contracts/define-command.ts';
import { createEnvelope, type DomainEventEnvelope } from '../contracts/envelope.ts';
import { buildEventType } from '../contracts/event-type.ts';
import { buildCategory, buildStreamName } from '../contracts/stream-name.ts';
import type { TenantLookup } from '../contracts/tenant.ts';
import type { Clock } from '../foundation/clock.ts';
import { idFromKey } from '../foundation/ids.ts';
import { isForgotten, subjectHeader } from '../store/erasure.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';

/** Identifies a saga: enough to find and read its streams. */
export interface SagaName {
  readonly bc: string;
  readonly name: string;
  readonly version: number;
}

/** A command as a saga stores it until its outcome is known. */
export interface SagaRequest {
  readonly tenant: string;
  readonly id: string;
  readonly command: NewCommand;
  /** The category of the aggregate, if the saga names it. */
  readonly aggregate?: string | undefined;
}

/** The work that failed when the saga was parked. */
export type ParkedAt =
  /** The command of the step has no outcome yet. */
  | { readonly at: 'step'; readonly n: number }
  /** The step has an outcome, but the decision after it failed. */
  | { readonly at: 'answer'; readonly n: number; readonly accepted: boolean }
  | { readonly at: 'compensation'; readonly n: number }
  | { readonly at: 'timer'; readonly timer: string }
  | { readonly at: 'event'; readonly eventId: string };

/** The operator who resumed the saga, and why. */
export interface SagaOperator {
  readonly by: string;
  readonly note?: string;
}

export type SagaFact =
  | { readonly kind: 'started'; readonly eventType: string }
  | { readonly kind: 'event-taken'; readonly eventId: string; readonly eventType: string }
  /** The event came before the start or while the saga was parked; it waits in the saga's stream. */
  | {
      readonly kind: 'event-held';
      readonly eventId: string;
      readonly eventType: string;
      readonly stream: string;
    }
  | { readonly kind: 'data-set'; readonly data: unknown }
  | {
      readonly kind: 'step-requested';
      readonly n: number;
      readonly step: string;
      readonly request?: SagaRequest;
    }
  | { readonly kind: 'step-done'; readonly n: number }
  | {
      readonly kind: 'step-failed';
      readonly n: number;
      readonly reason: string;
      readonly message?: string;
    }
  /** The step may have taken effect, so it is compensated. */
  | { readonly kind: 'step-doubted'; readonly n: number; readonly message?: string }
  | { readonly kind: 'timer-set'; readonly timer: string; readonly dueAt: string }
  | { readonly kind: 'timer-cancelled'; readonly timer: string }
  | { readonly kind: 'timer-fired'; readonly timer: string }
  | { readonly kind: 'timer-taken'; readonly timer: string }
  /** The saga completes when the last step has an outcome. */
  | { readonly kind: 'completing' }
  | { readonly kind: 'completed' }
  | { readonly kind: 'compensating'; readonly reason: string }
  | {
      readonly kind: 'compensation-requested';
      readonly n: number;
      readonly request?: SagaRequest;
    }
  | { readonly kind: 'compensation-done'; readonly n: number }
  /** There is nothing to compensate, or an operator did it manually. */
  | { readonly kind: 'compensation-skipped'; readonly n: number }
  | { readonly kind: 'compensated' }
  | (ParkedAt & { readonly kind: 'parked'; readonly reason: string; readonly message?: string })
  | (SagaOperator & { readonly kind: 'resumed'; readonly how: 'resume' | 'skip' });

type SagaFactKind = SagaFact['kind'];

const kinds: Readonly<Record<SagaFactKind, true>> = {
  started: true,
  'event-taken': true,
  'event-held': true,
  'data-set': true,
  'step-requested': true,
  'step-done': true,
  'step-failed': true,
  'step-doubted': true,
  'timer-set': true,
  'timer-cancelled': true,
  'timer-fired': true,
  'timer-taken': true,
  completing: true,
  completed: true,
  compensating: true,
  'compensation-requested': true,
  'compensation-done': true,
  'compensation-skipped': true,
  compensated: true,
  parked: true,
  resumed: true,
};

/** The category of a saga's streams. */
export function sagaCategory({ bc, name, version }: SagaName): string {
  return buildCategory<string, string>(bc, name, version);
}

export function sagaStream(
  { bc, name, version }: SagaName,
  { tenant, key }: { readonly tenant: string; readonly key: string },
  tenants: TenantLookup | undefined,
): string {
  return buildStreamName<string, string>(bc, name, version, tenant, key, tenants);
}

/** The event types in a saga's stream. */
export function sagaTypes({ name, version }: SagaName): readonly string[] {
  return Object.keys(kinds).map((kind) =>
    buildEventType<string, string, number>(name, kind, version),
  );
}

/** Whether a saga may have events of this type; an aggregate may have them as well. */
export function isFactType(type: string): boolean {
  return Object.hasOwn(kinds, type.split('.')[1] ?? '');
}

/** Whether this first event of a stream is one of a saga, not of an aggregate. */
export function isFirstFact(first: RecordedEvent): boolean {
  const { kind, ...fact } = toFact(first) ?? {};
  const members = kind === 'started' ? ['eventType'] : ['eventId', 'eventType', 'stream'];
  const isFirst = kind === 'started' || kind === 'event-held';
  return isFirst && members.every((member) => Object.hasOwn(fact, member));
}

/** Undefined: not a saga event, or one of a newer version. */
export function toFact({ type, payload, headers }: RecordedEvent): SagaFact | undefined {
  if (!isFactType(type)) return undefined;
  const kind = type.split('.')[1];
  // The data subject was forgotten: only the skeleton is left, which is enough for folding.
  const body = isForgotten(payload) ? headers?.[skeletonHeader] : payload;
  return { ...(body as object), kind } as SagaFact;
}

/** The header with the part of an encrypted payload that contains no personal data. */
const skeletonHeader = 'saga';

export interface FactContext extends SagaName {
  readonly stream: string;
  readonly tenant: string;
  readonly key: string;
  /** Revision of the previous event. */
  readonly revision: number;
  readonly correlationId: string;
  /** The person whose data the facts may contain. */
  readonly subject: string | undefined;
}

/** The cause of the facts: the same cause gives the same event ids in every process. */
export interface FactCause {
  readonly id: string;
  readonly causationId: string;
  /** The trace context, as headers. */
  readonly trace?: Readonly<Record<string, unknown>> | undefined;
}

export function toEnvelopes(
  facts: readonly SagaFact[],
  context: FactContext,
  cause: FactCause,
  clock: Clock,
): readonly DomainEventEnvelope[] {
  const { bc, name, version, tenant, key, revision, stream, correlationId, subject } = context;
  const headersOf = (payload: object): Readonly<Record<string, unknown>> => ({
    ...cause.trace,
    ...(subject === undefined
      ? {}
      : { [subjectHeader]: subject, [skeletonHeader]: skeletonOf(payload) }),
  });
  return facts.map((fact, index) => {
    const { kind, ...payload } = fact;
    const headers = headersOf(payload);
    return createEnvelope(
      { type: buildEventType<string, string, number>(name, kind, version), payload },
      {
        tenant,
        aggregate: { bc, type: name, id: key, version: revision + index + 2 },
        eventId: idFromKey(`${stream} ${cause.id} ${index}`),
        correlationId,
        causationId: cause.causationId,
        ...(Object.keys(headers).length === 0 ? {} : { headers }),
      },
      { clock },
    );
  });
}

/** Removes the members that may contain personal data. */
export function skeletonOf<Fact extends object>(fact: Fact): Fact {
  const {
    data: _data,
    request: _request,
    message: _message,
    ...rest
  } = fact as Fact & {
    readonly data?: unknown;
    readonly request?: unknown;
    readonly message?: unknown;
  };
  return rest as unknown as Fact;
}
