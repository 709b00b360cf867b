// A request: created → queued → sent, or failed and queued again on request. An attempt is recorded before the call to Slack
// and closed after it; an attempt that was not closed may have posted.

import { defineAggregate, CommandRejected } from 'millrace/aggregates';
import { slackAddressing } from 'millrace/contracts';
import { boundedContext } from './fields.ts';
import {
  beginAttempt,
  createRequest,
  deferAttempt,
  queueRequest,
  recordFailed,
  recordSent,
  requestCreated,
  requestFailed,
  requestQueued,
  requestSent,
  requestUpdated,
  updateRequest,
  type RequestContent,
} from './message-request-events.ts';

export const requestStatuses = ['created', 'queued', 'sent', 'failed'] as const;
export type RequestStatus = (typeof requestStatuses)[number];

export interface RequestState {
  readonly status: RequestStatus | 'unknown';
  readonly content?: RequestContent;
  readonly round: number;
  readonly priority?: number | undefined;
  readonly queuedAtMs: number;
  readonly dueAtMs: number;
  /** Attempts of this round, without rate-limited ones. */
  readonly attempts: number;
  /** The fence of the open attempt. */
  readonly fence?: string | undefined;
  /** An attempt of any round may have posted. */
  readonly mayBePosted: boolean;
  /** Channels of attempts that may have posted. */
  readonly channels: readonly string[];
  /** Start of the first attempt that may have posted: the message cannot be older. */
  readonly firstBegunAtMs?: number | undefined;
  readonly lastBegunAtMs?: number | undefined;
  /** The flow of the request. */
  readonly correlationId: string;
}

const unknown: RequestState = {
  status: 'unknown',
  round: 0,
  queuedAtMs: 0,
  dueAtMs: 0,
  attempts: 0,
  mayBePosted: false,
  channels: [],
  correlationId: '',
};

export const messageRequest = defineAggregate({
  bc: boundedContext,
  name: 'message-request',
  version: 1,
  streamName: slackAddressing.stream,
  events: [requestCreated, requestUpdated, requestQueued, requestSent, requestFailed],
  commands: [
    createRequest,
    updateRequest,
    queueRequest,
    beginAttempt,
    deferAttempt,
    recordSent,
    recordFailed,
  ],
  initial: unknown,
  evolve: {
    'message-request.created.v1': (state, content, { correlationId }): RequestState => ({
      ...state,
      status: 'created',
      content,
      correlationId,
    }),
    'message-request.updated.v1': (state, update, { occurredAt }): RequestState => {
      if (update.change === 'content') {
        const { change: _kind, ...content } = update;
        return { ...state, content };
      }
      if (update.change === 'attempt') {
        const begunAtMs = Date.parse(occurredAt);
        return {
          ...state,
          attempts: update.attempt,
          fence: update.fence,
          mayBePosted: true,
          channels: [...new Set([...state.channels, update.channelId])],
          firstBegunAtMs: state.firstBegunAtMs ?? begunAtMs,
          lastBegunAtMs: begunAtMs,
        };
      }
      const { mayBePosted, counts } = update;
      return {
        ...settled(state, mayBePosted),
        attempts: counts ? state.attempts : Math.max(0, state.attempts - 1),
      };
    },
    'message-request.queued.v1': (state, { round, priority, dueAt }, event): RequestState => {
      const queuedAtMs = Date.parse(event.occurredAt);
      const dueAtMs = dueAt === undefined ? queuedAtMs : Date.parse(dueAt);
      return { ...state, status: 'queued', round, priority, queuedAtMs, dueAtMs, attempts: 0 };
    },
    'message-request.sent.v1': (state): RequestState => ({
      ...settled(state, true),
      status: 'sent',
    }),
    'message-request.failed.v1': (state, { mayBePosted }): RequestState => ({
      ...settled(state, mayBePosted),
      status: 'failed',
    }),
  },
  decide: {
    'message-request.create': ({ priority, delayMs, ...content }, state, { id, nowMs }) => {
      if (state.status !== 'unknown') {
        throw new CommandRejected('message-request-exists', `Request ${id} already exists.`);
      }
      return [requestCreated(content), queued(content, { round: 1, priority, delayMs, nowMs })];
    },
    'message-request.update': (changes, state, { id, nowMs }) => {
      const before = known(state, id);
      if (state.status === 'sent' || state.mayBePosted) {
        throw new CommandRejected(
          'message-request-under-way',
          `Request ${id} cannot be changed: it was sent or may have been sent.`,
        );
      }
      const content = withChanges(before, changes);
      const updated = requestUpdated({ change: 'content', ...content });
      if (state.status !== 'failed') return updated;
      return [updated, queued(content, { round: state.round + 1, nowMs })];
    },
    'message-request.queue': ({ priority, delayMs }, state, { id, nowMs }) => {
      const content = known(state, id);
      if (state.status === 'queued') return [];
      if (state.status === 'sent')
        throw new CommandRejected('message-request-sent', `Request ${id} was already sent.`);
      return queued(content, { round: state.round + 1, priority, delayMs, nowMs });
    },
    'message-request.begin': ({ fence, channelId }, state, { id }) => {
      known(state, id);
      if (state.status !== 'queued') {
        throw new CommandRejected(
          `message-request-${state.status}`,
          `Request ${id} has the status ${state.status}.`,
        );
      }
      if (state.fence === fence) return [];
      return requestUpdated({ change: 'attempt', attempt: state.attempts + 1, fence, channelId });
    },
    // A worker that lost its lock changes nothing: the new owner of the request decides.
    'message-request.defer': ({ fence, code, mayBePosted, counts }, state, { id }) => {
      known(state, id);
      if (state.status !== 'queued' || state.fence !== fence) return [];
      return requestUpdated({ change: 'deferred', code, mayBePosted, counts });
    },
    // A confirmed post is recorded, also from a worker that lost its lock.
    'message-request.record-sent': (sent, state, { id }) => {
      known(state, id);
      return state.status === 'sent' ? [] : requestSent(sent);
    },
    'message-request.record-failed': ({ fence, ...failure }, state, { id }) => {
      known(state, id);
      const isOthers = state.fence !== undefined && state.fence !== fence;
      if (state.status !== 'queued' || isOthers) return [];
      return requestFailed(failure);
    },
  },
});

/** Log fields of a request, in addition to tenant, id and job. */
export function tagsOf({ content, correlationId }: RequestState) {
  const { workspaceCode, templateCode, channelCode } = content ?? {};
  return { workspaceCode, templateCode, channelCode, correlationId };
}

function known({ content }: RequestState, id: string): RequestContent {
  if (content !== undefined) return content;
  throw new CommandRejected('message-request-unknown', `Unknown request ${id}.`);
}

/** Closes the attempt; if nothing was posted, later attempts need not search. */
function settled(state: RequestState, mayBePosted: boolean): RequestState {
  const { fence: _closed, firstBegunAtMs, channels, ...rest } = state;
  return mayBePosted
    ? { ...rest, mayBePosted, channels, firstBegunAtMs }
    : { ...rest, mayBePosted, channels: [] };
}

function queued(
  { threadTs }: RequestContent,
  {
    round,
    priority,
    delayMs = 0,
    nowMs,
  }: {
    readonly round: number;
    readonly priority?: number | undefined;
    readonly delayMs?: number | undefined;
    readonly nowMs: number;
  },
) {
  const dueAt = delayMs === 0 ? {} : { dueAt: new Date(nowMs + delayMs).toISOString() };
  return requestQueued({
    round,
    ...dueAt,
    ...(priority === undefined ? {} : { priority }),
    ...(threadTs === undefined ? {} : { threadTs }),
  });
}

function withChanges(
  before: RequestContent,
  changes: Readonly<Record<string, unknown>>,
): RequestContent {
  const entries = Object.entries({ ...before, ...changes });
  return Object.fromEntries(
    entries.filter(([, value]) => value !== null && value !== undefined),
  ) as RequestContent;
}
