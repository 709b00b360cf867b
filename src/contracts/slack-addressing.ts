// Names of Slack message requests: keys, stream, queue and the job.

import {
  checkId,
  checkIdentifier,
  checkLength,
  checkNoPersonalData,
  nameInvalid,
  nameLimits,
} from './identifier.ts';
import { checkTenant, joinTenant, splitTenant, type TenantLookup } from './tenant.ts';

/** The job refers to the message request; the worker loads the request when it runs. */
export interface SendMessageJob {
  readonly messageRequestId: string;
  readonly tenant: string;
  readonly threadTs?: string | null;
}

const streamPrefix = 'notification.slack.request-';

/**
 * Names of the Slack message-request module.
 *
 * @example
 * import { slackAddressing } from 'millrace/contracts';
 *
 * slackAddressing.snapshot('core', 'r-1'); // notification.slack:v1:{core}:message-request:r-1
 * slackAddressing.stream('core', 'r-1'); // notification.slack.request-core-r-1
 */
export const slackAddressing = {
  queueName: 'MessageRequestQueue',
  jobName: 'send-message-request',
  events: {
    created: 'message-request.created.v1',
    updated: 'message-request.updated.v1',
    queued: 'message-request.queued.v1',
    sent: 'message-request.sent.v1',
    failed: 'message-request.failed.v1',
  },

  snapshot: (tenant: string, id: string): string => requestKey(tenant, id),
  dispatched: (tenant: string, id: string): string => `${requestKey(tenant, id)}:dispatched`,
  sendLock: (tenant: string, id: string): string => `${requestKey(tenant, id)}:send-lock`,
  indexUpdated: (tenant: string): string => `${space(tenant)}:idx:message-request:updated`,
  indexByStatus: (tenant: string, status: string): string => {
    checkIdentifier('status', status);
    return `${space(tenant)}:idx:message-request:by-status:${status}`;
  },

  stream: (tenant: string, id: string, tenants?: TenantLookup): string => {
    checkId('message request id', id);
    const stream = `${streamPrefix}${joinTenant(tenant, id, tenants)}`;
    checkLength(stream, nameLimits.streamCharsMax);
    return stream;
  },

  parseStream: (
    stream: string,
    tenants?: TenantLookup,
  ): { readonly tenant: string; readonly id: string } => {
    const parts = stream.startsWith(streamPrefix)
      ? splitTenant(stream.slice(streamPrefix.length), tenants)
      : undefined;
    if (parts === undefined) {
      throw nameInvalid('stream', stream, `must be ${streamPrefix}<tenant>-<id>`);
    }
    return parts;
  },
} as const;

function space(tenant: string): string {
  checkTenant(tenant);
  return `notification.slack:v1:{${tenant}}`;
}

function requestKey(tenant: string, id: string): string {
  checkNoPersonalData(id);
  checkId('message request id', id);
  const key = `${space(tenant)}:message-request:${id}`;
  // `:dispatched` is the longest suffix of this key.
  checkLength(key, nameLimits.keyCharsMax - ':dispatched'.length);
  return key;
}
