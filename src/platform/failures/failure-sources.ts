// The kinds of failure: how each is read, replayed and discarded.

import { failureCause, type FailureCause } from '../../foundation/failure-cause.ts';
import type { Platform } from '../create-platform.ts';

export type FailurePlatform = Pick<Platform, 'clock' | 'engines' | 'tasks'>;

export const failureSources = ['dead-letter', 'delivery', 'job'] as const;

export type FailureSource = (typeof failureSources)[number];

export interface Failure {
  readonly source: FailureSource;
  readonly id: string;
  /** The subscription, destination or task type. */
  readonly where: string;
  /** The type of the event, message or job. */
  readonly type: string;
  readonly error: string;
  readonly cause: FailureCause;
  /** The time of the last attempt. */
  readonly at: string;
  readonly attempts: number;
  readonly tenant?: string | undefined;
  readonly stream?: string | undefined;
  readonly correlationId?: string | undefined;
  /** False: it is tried again by itself. */
  readonly isFinal: boolean;
  /** Its aggregate waits for a decision. */
  readonly isParked: boolean;
}

export interface FailureKind {
  /** Page by page. */
  read(platform: FailurePlatform, tenant: string | undefined): AsyncIterable<readonly Failure[]>;
}

const pageSize = 200;

export const failureKinds: Readonly<Record<FailureSource, FailureKind>> = {
  'dead-letter': { read: readDeadLetters },
  delivery: { read: readDeliveries },
  job: { read: readJobs },
};

/** Failures that were stored without a cause have that of their message. */
function withCause(
  failure: Omit<Failure, 'cause'>,
  stored: FailureCause | null | undefined,
): Failure {
  return { ...failure, cause: stored ?? failureCause(failure) };
}

async function* readDeadLetters(
  { engines }: FailurePlatform,
  tenant: string | undefined,
): AsyncGenerator<readonly Failure[]> {
  const filter = { tenant, status: 'pending' } as const;
  for (let after: string | undefined; ;) {
    const page = await engines.subscriptions.deadLetters.list(filter, { limit: pageSize, after });
    yield page.map((letter) =>
      withCause(
        {
          source: 'dead-letter',
          id: letter.id,
          where: letter.handler,
          type: letter.eventType,
          error: letter.error,
          at: letter.history.at(-1)?.at ?? letter.createdAt,
          attempts: letter.attempts,
          tenant: letter.tenant,
          stream: letter.stream,
          correlationId: letter.correlationId,
          isFinal: true,
          isParked: letter.parked,
        },
        letter.cause,
      ),
    );
    if (page.length < pageSize) return;
    after = page.at(-1)?.id;
  }
}

async function* readDeliveries(
  { engines: { outbox } }: FailurePlatform,
  tenantId: string | undefined,
): AsyncGenerator<readonly Failure[]> {
  if (outbox === undefined) return;
  for (const status of ['DEAD', 'FAILED'] as const) {
    for (let after: string | undefined; ;) {
      const page = await outbox.list({ tenantId, status }, { limit: pageSize, after });
      yield page.map((message) =>
        withCause(
          {
            source: 'delivery',
            id: message.id,
            where: message.integrationType,
            type: message.eventType,
            error: message.lastError ?? '',
            at: message.updatedAt.toISOString(),
            attempts: message.attempts,
            tenant: message.tenantId,
            stream: message.sourceStreamId,
            correlationId: message.correlationId,
            isFinal: status === 'DEAD',
            isParked: false,
          },
          message.cause,
        ),
      );
      if (page.length < pageSize) break;
      after = page.at(-1)?.id;
    }
  }
}

async function* readJobs(
  { engines, tasks }: FailurePlatform,
  tenant: string | undefined,
): AsyncGenerator<readonly Failure[]> {
  if (!engines.has('tasks')) return;
  const all = await tasks();
  for (let cursor: string | undefined; ;) {
    const page = await all.list({ state: 'failed', tenant }, { cursor, limit: pageSize });
    yield page.tasks.map((job) => {
      const { message = '', fingerprint, name, code, stack } = job.error ?? {};
      return withCause(
        {
          source: 'job',
          id: job.id,
          where: job.type,
          type: job.type,
          error: message,
          at: (job.endedAt ?? job.updatedAt).toISOString(),
          attempts: job.failures,
          tenant: job.tenant,
          correlationId: job.correlationId,
          isFinal: true,
          isParked: false,
        },
        fingerprint === undefined ? undefined : { name, code, stack, fingerprint },
      );
    });
    if (page.cursor === undefined) return;
    cursor = page.cursor;
  }
}
