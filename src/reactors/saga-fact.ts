// What happens in a saga, as events of its own stream. They say what was decided, never why: folding
// them needs none of the user's code, so that a changed saga reads its old streams as they were.

import type { NewCommand } from '../contracts/define-command.ts';
import { createEnvelope, type DomainEventEnvelope } from '../contracts/envelope.ts';
import { buildEventType } from '../contracts/event-type.ts';
import { buildCategory, buildStreamName } from '../contracts/stream-name.ts';
import type { TenantLookup } from '../contracts/tenant.ts';
import type { Clock } from '../foundation/clock.ts';
import { idFromKey } from '../foundation/ids.ts';
import { isForgotten, subjectHeader } from '../store/erasure.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';

/** Which saga: all that is needed to find and to read its streams. */
export interface SagaName {
  readonly bc: string;
  readonly name: string;
  readonly version: number;
}

/** A command as a saga keeps it until it is answered. */
export interface SagaRequest {
  readonly tenant: string;
  readonly id: string;
  readonly command: NewCommand;
}

/** What could not go on when a saga was parked. */
export type ParkedAt =
  /** The step's command has no answer. */
  | { readonly at: 'step'; readonly n: number }
  /** The step was answered; what follows from that could not be decided. */
  | { readonly at: 'answer'; readonly n: number; readonly accepted: boolean }
  | { readonly at: 'compensation'; readonly n: number }
  | { readonly at: 'timer'; readonly timer: string }
  | { readonly at: 'event'; readonly eventId: string };

/** Who resumed it, and why. */
export interface SagaOperator {
  readonly by: string;
  readonly note?: string;
}

export type SagaFact =
  | { readonly kind: 'started'; readonly eventType: string }
  | { readonly kind: 'event-taken'; readonly eventId: string; readonly eventType: string }
  /** It came before the start, or while the saga is parked: it waits in the saga's own stream. */
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
  /** Nobody knows whether it took effect: it is compensated as if it had. */
  | { readonly kind: 'step-doubted'; readonly n: number; readonly message?: string }
  | { readonly kind: 'timer-set'; readonly timer: string; readonly dueAt: string }
  | { readonly kind: 'timer-cancelled'; readonly timer: string }
  | { readonly kind: 'timer-fired'; readonly timer: string }
  | { readonly kind: 'timer-taken'; readonly timer: string }
  /** Completed as soon as the last step is answered. */
  | { readonly kind: 'completing' }
  | { readonly kind: 'completed' }
  | { readonly kind: 'compensating'; readonly reason: string }
  | {
      readonly kind: 'compensation-requested';
      readonly n: number;
      readonly request?: SagaRequest;
    }
  | { readonly kind: 'compensation-done'; readonly n: number }
  /** There is nothing to compensate, or an operator did it by hand. */
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

/** Of the streams of a saga. */
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

/** The types of a saga's own events. */
export function sagaTypes({ name, version }: SagaName): readonly string[] {
  return Object.keys(kinds).map((kind) =>
    buildEventType<string, string, number>(name, kind, version),
  );
}

/** Undefined: it is none of ours, or of a version that knows more. */
export function toFact({ type, payload, headers }: RecordedEvent): SagaFact | undefined {
  const kind = type.split('.')[1] ?? '';
  if (!Object.hasOwn(kinds, kind)) return undefined;
  // Whom it is about was forgotten: what is left is the skeleton, which the fold needs.
  const body = isForgotten(payload) ? headers?.[skeletonHeader] : payload;
  return { ...(body as object), kind } as SagaFact;
}

/** The header that repeats, beside a sealed payload, what holds no personal data. */
const skeletonHeader = 'saga';

export interface FactPlace extends SagaName {
  readonly stream: string;
  readonly tenant: string;
  readonly key: string;
  /** Of the last event before. */
  readonly revision: number;
  readonly correlationId: string;
  /** Whose personal data the facts may hold. */
  readonly subject: string | undefined;
}

/** Why the facts come about: the same cause gives them the same ids, whoever writes them. */
export interface FactCause {
  readonly id: string;
  readonly causationId: string;
  /** The headers of the trace that it is part of. */
  readonly trace?: Readonly<Record<string, unknown>> | undefined;
}

export function toEnvelopes(
  facts: readonly SagaFact[],
  place: FactPlace,
  cause: FactCause,
  clock: Clock,
): readonly DomainEventEnvelope[] {
  const { bc, name, version, tenant, key, revision, stream, correlationId, subject } = place;
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

/** Without what may be about a person. */
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
