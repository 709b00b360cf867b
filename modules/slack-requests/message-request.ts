// A request: created → queued → sent, or failed and, at somebody's wish, queued again. Attempts are opened before
// anything leaves, and closed by whoever opened them; an attempt that nobody closed may have posted.

import { defineAggregate, Refused } from 'millrace/aggregates';
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
  /** Of this round, without those that Slack asked to come later. */
  readonly attempts: number;
  /** Of the attempt that is not closed. */
  readonly fence?: string | undefined;
  /** An attempt of any round that is not known to have posted nothing. */
  readonly mayBePosted: boolean;
  /** Where those went. */
  readonly channels: readonly string[];
  /** When the first of those began: the message cannot be older. */
  readonly firstBegunAtMs?: number | undefined;
  readonly lastBegunAtMs?: number | undefined;
  /** The flow that it belongs to. */
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
        throw new Refused('message-request-exists', `${id} was created before`);
      }
      return [requestCreated(content), queued(content, { round: 1, priority, delayMs, nowMs })];
    },
    'message-request.update': (changes, state, { id, nowMs }) => {
      const before = known(state, id);
      if (state.status === 'sent' || state.mayBePosted) {
        throw new Refused('message-request-under-way', `${id} is sent, or may be`);
      }
      const content = withChanges(before, changes);
      const updated = requestUpdated({ change: 'content', ...content });
      if (state.status !== 'failed') return updated;
      return [updated, queued(content, { round: state.round + 1, nowMs })];
    },
    'message-request.queue': ({ priority, delayMs }, state, { id, nowMs }) => {
      const content = known(state, id);
      if (state.status === 'queued') return [];
      if (state.status === 'sent') throw new Refused('message-request-sent', `${id} is sent`);
      return queued(content, { round: state.round + 1, priority, delayMs, nowMs });
    },
    'message-request.begin': ({ fence, channelId }, state, { id }) => {
      known(state, id);
      if (state.status !== 'queued') {
        throw new Refused(`message-request-${state.status}`, `${id} is ${state.status}`);
      }
      if (state.fence === fence) return [];
      return requestUpdated({ change: 'attempt', attempt: state.attempts + 1, fence, channelId });
    },
    // A late owner changes nothing: what it could not close, whoever took over has to look after.
    'message-request.defer': ({ fence, code, mayBePosted, counts }, state, { id }) => {
      known(state, id);
      if (state.status !== 'queued' || state.fence !== fence) return [];
      return requestUpdated({ change: 'deferred', code, mayBePosted, counts });
    },
    // But that it was posted is a fact, whoever saw it.
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

/** In every line of the log about it, beside its tenant, its id and its job. */
export function tagsOf({ content, correlationId }: RequestState) {
  const { workspaceCode, templateCode, channelCode } = content ?? {};
  return { workspaceCode, templateCode, channelCode, correlationId };
}

function known({ content }: RequestState, id: string): RequestContent {
  if (content !== undefined) return content;
  throw new Refused('message-request-unknown', `there is no request ${id}`);
}

/** Nothing is open any more; what is known to be not there needs not be looked for. */
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
