// What can happen to a request. Names and fields are those of the document, in the grammar of event types.

import { defineCommand, defineEvent } from 'millrace/contracts';
import { z } from 'zod';
import { channelId, code, data, failureCode, slackRequestLimits, threadTs } from './fields.ts';

const content = z.object({
  workspaceCode: code,
  templateCode: code.optional(),
  channelCode: code.optional(),
  /** A channel or a person, by its id. */
  recipient: channelId.optional(),
  data,
  /** Answers in this thread. */
  threadTs: threadTs.optional(),
});
const queueing = z.object({
  priority: z.int().min(1).max(slackRequestLimits.priorityMax).optional(),
  delayMs: z.int().min(0).max(slackRequestLimits.delayMsMax).optional(),
});
/** Whoever holds the send-lock, by the lock's value. */
const fence = z.string().min(1).max(100);

export type RequestContent = z.infer<typeof content>;

const attempt = z.object({
  change: z.literal('attempt'),
  attempt: z.int(),
  fence,
  /** Where it will be, if it is. */
  channelId,
});
const deferred = z.object({
  change: z.literal('deferred'),
  code: failureCode,
  /** Whether the attempt may have posted: the next one looks first. */
  mayBePosted: z.boolean(),
  /** False: Slack asked for a pause, and the attempt is none. */
  counts: z.boolean(),
});
/** As Slack has it. */
const posted = z.object({
  ts: z.string().min(1).max(50),
  channelId: z.string().min(1).max(50),
});
const changed = content.extend({ change: z.literal('content') });

export const requestCreated = defineEvent('message-request.created.v1', content);
export const requestUpdated = defineEvent(
  'message-request.updated.v1',
  z.discriminatedUnion('change', [changed, attempt, deferred]),
);
/** The round counts how often it was put in the queue by somebody's wish. */
export const requestQueued = defineEvent(
  'message-request.queued.v1',
  z.object({
    round: z.int().min(1),
    priority: queueing.shape.priority,
    /** Not before. */
    dueAt: z.iso.datetime().optional(),
    threadTs: threadTs.optional(),
  }),
);
export const requestSent = defineEvent('message-request.sent.v1', posted);
export const requestFailed = defineEvent(
  'message-request.failed.v1',
  z.object({ code: failureCode, reason: z.string().max(500).optional(), mayBePosted: z.boolean() }),
);

export const createRequest = defineCommand(
  'message-request.create',
  content.extend(queueing.shape),
);
/** What is left out stays; null takes it away. A failed one goes into the queue again. */
export const updateRequest = defineCommand(
  'message-request.update',
  z.object({
    templateCode: code.nullable().optional(),
    channelCode: code.nullable().optional(),
    recipient: channelId.nullable().optional(),
    data: data.optional(),
    threadTs: threadTs.nullable().optional(),
  }),
);
/** Once more, of one that failed. */
export const queueRequest = defineCommand('message-request.queue', queueing);
/** Before anything is sent: whoever comes after a crash knows that something may have been. */
export const beginAttempt = defineCommand('message-request.begin', z.object({ fence, channelId }));
export const deferAttempt = defineCommand(
  'message-request.defer',
  deferred.omit({ change: true }).extend({ fence }),
);
export const recordSent = defineCommand('message-request.record-sent', posted);
export const recordFailed = defineCommand(
  'message-request.record-failed',
  z.object({
    fence,
    code: failureCode,
    reason: z.string().max(500).optional(),
    mayBePosted: z.boolean(),
  }),
);
