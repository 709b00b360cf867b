// The kinds of failure: how each is read, replayed and discarded.

import { busLimits } from '../../bus/bus-limits.ts';
import { hasCode } from '../../foundation/error.ts';
import { failureCause, type FailureCause } from '../../foundation/failure-cause.ts';
import { sagaAt } from '../../reactors/saga-admin.ts';
import { messagePages } from '../../outbox/message-pages.ts';
import type { OutboxStatus } from '../../outbox/outbox-message.ts';
import type { DeadLetter } from '../../subscriptions/dead-letter.ts';
import type { Platform } from '../create-platform.ts';

export type FailurePlatform = Pick<Platform, 'clock' | 'engines' | 'tasks'>;

export const failureSources = ['dead-letter', 'delivery', 'job', 'bus', 'saga'] as const;

export type FailureSource = (typeof failureSources)[number];

export interface Failure {
  readonly source: FailureSource;
  readonly id: string;
  /** The subscription, destination, task type, consumer group or saga. */
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

/** The failures that are read: of one tenant, and of one subscription, destination, task type, group or saga. */
interface ReadFilter {
  readonly tenant?: string | undefined;
  readonly where?: string | undefined;
}

interface FailureAction {
  readonly ids: readonly string[];
  /** Failures after this time are not changed, ISO 8601. */
  readonly until: string;
  readonly by: string;
  readonly reason: string;
}

/** Returns the ids of the failures that it changed; failures that have changed before are left alone. */
type ChangeFailures = (
  platform: FailurePlatform,
  action: FailureAction,
) => Promise<readonly string[]>;

export interface FailureKind {
  /** Page by page. */
  read(platform: FailurePlatform, filter: ReadFilter): AsyncIterable<readonly Failure[]>;
  /** The number of all of them, if it costs less than reading them. */
  count?(platform: FailurePlatform): Promise<number>;
  readonly replay: ChangeFailures;
  /** Retries failures that are tried again by themselves now; undefined: none of this kind are. */
  readonly retry?: ChangeFailures;
  /** Undefined: failures of this kind cannot be discarded. */
  readonly discard?: ChangeFailures;
}

const pageSize = 100;
/** Jobs and dead letters of the bus are read with their payloads. An engine reads as much at once. */
const pageBytes = busLimits.batchBytesMax;

export const failureKinds: Readonly<Record<FailureSource, FailureKind>> = {
  'dead-letter': {
    read: readDeadLetters,
    count: ({ engines }) =>
      engines.subscriptions.deadLetters.count({ status: 'pending', replayRequested: false }),
    async replay(platform, action) {
      const { clock, engines } = platform;
      const ids = await pendingLetters(platform, action);
      const request = { by: action.by, atMs: clock.now() };
      if (ids.length > 0)
        await engines.subscriptions.deadLetters.replay({ ids, replayRequested: false }, request);
      return ids;
    },
    async discard(platform, action) {
      const { clock, engines } = platform;
      const ids = await pendingLetters(platform, action);
      const request = { by: action.by, reason: action.reason, atMs: clock.now() };
      if (ids.length > 0) await engines.subscriptions.deadLetters.discard({ ids }, request);
      return ids;
    },
  },
  delivery: {
    read: readDeliveries,
    async count({ engines: { outbox } }) {
      const { DEAD = 0, FAILED = 0 } = (await outbox?.counts()) ?? {};
      return DEAD + FAILED;
    },
    async replay(platform, action) {
      const found = await failedMessages(platform, action, ['DEAD']);
      if (found.length > 0) await platform.engines.outbox?.replay({ ids: found });
      return found;
    },
    async retry(platform, action) {
      const found = await failedMessages(platform, action, ['FAILED']);
      return (await platform.engines.outbox?.retryNow(found)) ?? [];
    },
    async discard(platform, action) {
      const { by, reason } = action;
      const found = await failedMessages(platform, action, ['DEAD', 'FAILED']);
      return (await platform.engines.outbox?.discard(found, { by, reason })) ?? [];
    },
  },
  job: {
    read: readJobs,
    async count({ engines, tasks }) {
      if (!engines.has('tasks')) return 0;
      const counts = await (await tasks()).counts();
      return counts.reduce((sum, { states }) => sum + states.failed, 0);
    },
    async replay({ tasks }, { ids, until }) {
      const all = await tasks();
      return each(ids, async (id) => {
        const job = await all.get(id);
        if (job?.state !== 'failed' || jobTime(job) > until) return false;
        return all.retry(id);
      });
    },
  },
  bus: {
    read: readBusLetters,
    async replay({ engines }, { ids }) {
      const bus = await engines.bus();
      return each(ids, async (id) => (await bus.replayDeadLetters(...letterOf(id))) > 0);
    },
    async discard({ engines }, { ids }) {
      const bus = await engines.bus();
      return each(ids, async (id) => (await bus.discardDeadLetters(...letterOf(id))) > 0);
    },
  },
  saga: {
    read: readSagas,
    async replay({ engines, clock }, { ids, until, by }) {
      return each(ids, async (stream) => {
        const { sagas, address } = await sagaAt(engines, stream, { clock });
        const { status, updatedAt = until } = await sagas.get(address);
        if (status !== 'parked' || new Date(updatedAt).toISOString() > until) return false;
        try {
          await sagas.resume(address, { by });
          return true;
        } catch (error) {
          if (hasCode(error, 'SAGA_NOT_PARKED')) return false;
          throw error;
        }
      });
    },
  },
};

async function each(
  ids: readonly string[],
  change: (id: string) => Promise<boolean>,
): Promise<readonly string[]> {
  const changed: string[] = [];
  for (const id of ids) if (await change(id)) changed.push(id);
  return changed;
}

const letterTime = ({ history, createdAt }: DeadLetter): string => history.at(-1)?.at ?? createdAt;

const jobTime = ({
  endedAt,
  updatedAt,
}: {
  readonly endedAt: Date | undefined;
  readonly updatedAt: Date;
}) => (endedAt ?? updatedAt).toISOString();

async function failedMessages(
  { engines: { outbox } }: FailurePlatform,
  { ids, until }: FailureAction,
  statuses: readonly OutboxStatus[],
): Promise<readonly string[]> {
  const found: string[] = [];
  if (outbox === undefined) return found;
  for await (const page of messagePages(outbox, { ids })) {
    for (const { id, status, updatedAt } of page) {
      if (statuses.includes(status) && updatedAt.toISOString() <= until) found.push(id);
    }
  }
  return found;
}

async function pendingLetters(
  { engines }: FailurePlatform,
  { ids, until }: FailureAction,
): Promise<readonly string[]> {
  const filter = { ids, status: 'pending', replayRequested: false } as const;
  const bound = { limit: ids.length, withoutPayloads: true };
  const found = await engines.subscriptions.deadLetters.list(filter, bound);
  return found.filter((letter) => letterTime(letter) <= until).map(({ id }) => id);
}

/** The id of a failure of the bus is its group and its sequence; no name of a group contains a slash. */
function letterOf(id: string): [group: string, sequences: readonly string[]] {
  const at = id.indexOf('/');
  return [id.slice(0, at), [id.slice(at + 1)]];
}

/** Failures that were stored without a cause have that of their message. */
function withCause(
  failure: Omit<Failure, 'cause'>,
  stored: FailureCause | null | undefined,
): Failure {
  return { ...failure, cause: stored ?? failureCause(failure) };
}

async function* readDeadLetters(
  { engines }: FailurePlatform,
  { tenant, where }: ReadFilter,
): AsyncGenerator<readonly Failure[]> {
  // A dead letter whose replay was requested has no outcome yet.
  const filter = { tenant, handler: where, status: 'pending', replayRequested: false } as const;
  for (let after: string | undefined; ;) {
    const bound = { limit: pageSize, after, withoutPayloads: true };
    const page = await engines.subscriptions.deadLetters.list(filter, bound);
    yield page.map((letter) =>
      withCause(
        {
          source: 'dead-letter',
          id: letter.id,
          where: letter.handler,
          type: letter.eventType,
          error: letter.error,
          at: letterTime(letter),
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
  { tenant, where }: ReadFilter,
): AsyncGenerator<readonly Failure[]> {
  if (outbox === undefined) return;
  for (const status of ['DEAD', 'FAILED'] as const) {
    const filter = { tenantId: tenant, integrationType: where, status };
    for await (const page of messagePages(outbox, filter)) {
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
    }
  }
}

async function* readJobs(
  { engines, tasks }: FailurePlatform,
  { tenant, where }: ReadFilter,
): AsyncGenerator<readonly Failure[]> {
  if (!engines.has('tasks')) return;
  const all = await tasks();
  for (let cursor: string | undefined; ;) {
    const page = await all.list(
      { state: 'failed', tenant, type: where },
      { cursor, limit: pageSize, bytesMax: pageBytes },
    );
    yield page.tasks.map((job) => {
      const { message = '', fingerprint, name, code, stack } = job.error ?? {};
      return withCause(
        {
          source: 'job',
          id: job.id,
          where: job.type,
          type: job.type,
          error: message,
          at: jobTime(job),
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

/** Messages of the bus have no tenant that a caller of one tenant could be checked against. */
async function* readBusLetters(
  { engines }: FailurePlatform,
  { tenant, where }: ReadFilter,
): AsyncGenerator<readonly Failure[]> {
  if (tenant !== undefined || !engines.has('bus')) return;
  const bus = await engines.bus();
  for (const { name: group } of await bus.groups()) {
    // Most places are no names of groups, which the bus rejects.
    if (where !== undefined && where !== group) continue;
    for (let after: string | undefined; ;) {
      const page = await bus.deadLetters(group, { limit: pageSize, after, bytesMax: pageBytes });
      if (page.length === 0) break;
      yield page.map((letter) =>
        withCause(
          {
            source: 'bus',
            id: `${group}/${letter.sequence}`,
            where: group,
            type: letter.origin.subject,
            error: letter.reason,
            at: letter.diedAt.toISOString(),
            attempts: letter.attempts,
            isFinal: true,
            isParked: false,
          },
          undefined,
        ),
      );
      after = page.at(-1)?.sequence;
    }
  }
}

/** Why a saga is parked, by the code in its stream. */
const parkReasons: Readonly<Record<string, string>> = {
  'handler-failed': 'A handler of the saga failed in its last attempt',
  unanswered: 'A command was not answered, so its effect is not known',
  forgotten: 'The data subject of a command was forgotten',
  'step-unknown': 'The saga no longer has the step that it must undo',
};

async function* readSagas(
  { engines }: FailurePlatform,
  { tenant, where }: ReadFilter,
): AsyncGenerator<readonly Failure[]> {
  for (let after: string | undefined; ;) {
    const query = { saga: where, status: 'parked', tenant } as const;
    const page = await engines.sagas.list({ ...query, limit: pageSize, after });
    yield page.map(({ reason = 'parked', ...saga }) =>
      withCause(
        {
          source: 'saga',
          id: saga.stream,
          where: saga.saga,
          type: saga.saga,
          error: parkReasons[reason] ?? reason,
          at: new Date(saga.updatedAtMs).toISOString(),
          attempts: 1,
          tenant: saga.tenant,
          stream: saga.stream,
          isFinal: true,
          isParked: true,
        },
        // Of the code, as in earlier versions: operators have noted and resolved causes.
        { ...failureCause({ source: 'saga', where: saga.saga, error: reason }), code: reason },
      ),
    );
    if (page.length < pageSize) return;
    after = page.at(-1)?.stream;
  }
}
