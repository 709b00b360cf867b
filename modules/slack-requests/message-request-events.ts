// Events and commands of a request. Names and fields are those of the requirement document, in our grammar of event types.

import { defineCommand, defineEvent } from 'millrace/contracts';
import { z } from 'zod';
import { channelId, code, data, failureCode, slackRequestLimits, threadTs } from './fields.ts';

const content = z.object({
  workspaceCode: code,
  templateCode: code.optional(),
  channelCode: code.optional(),
  /** A channel id or user id of Slack. */
  recipient: channelId.optional(),
  data,
  /** Posts into this thread. */
  threadTs: threadTs.optional(),
});
const queueing = z.object({
  priority: z.int().min(1).max(slackRequestLimits.priorityMax).optional(),
  delayMs: z.int().min(0).max(slackRequestLimits.delayMsMax).optional(),
});
/** The value of the send-lock, which identifies its holder. */
const fence = z.string().min(1).max(100);

export type RequestContent = z.infer<typeof content>;

const attempt = z.object({
  change: z.literal('attempt'),
  attempt: z.int(),
  fence,
  /** The channel of the attempt. */
  channelId,
});
const deferred = z.object({
  change: z.literal('deferred'),
  code: failureCode,
  /** The attempt may have posted: the next one searches the channel first. */
  mayBePosted: z.boolean(),
  /** False: rate-limited by Slack, so it does not count as an attempt. */
  counts: z.boolean(),
});
/** Identifies the message in Slack. */
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
/** `round` counts how often the request was queued by a command. */
export const requestQueued = defineEvent(
  'message-request.queued.v1',
  z.object({
    round: z.int().min(1),
    priority: queueing.shape.priority,
    /** Earliest time of sending. */
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
/** Omitted fields stay, null removes a field. A failed request is queued again. */
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
/** Queues a failed request again. */
export const queueRequest = defineCommand('message-request.queue', queueing);
/** Recorded before the call to Slack: after a crash it shows that the message may have been posted. */
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
