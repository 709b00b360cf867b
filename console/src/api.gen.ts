// Generated from the OpenAPI document by `npm run generate`.

export interface AuditEntry {
  readonly id: string;
  readonly at: string;
  readonly action: string;
  readonly target: string;
  readonly actor: {
    readonly kind: string;
    readonly name: string;
    readonly tenant?: string | undefined;
    readonly address?: string | undefined;
  };
  readonly requestId?: string | undefined;
  readonly outcome: 'done' | 'failed' | 'unknown';
  readonly endedAt?: string | undefined;
  readonly error?: string | undefined;
}

export interface DeadLetter {
  readonly id: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly aggregateId: string;
  readonly payload: unknown;
  readonly error: string;
  readonly cause: {
    readonly name?: string | undefined;
    readonly code?: string | undefined;
    readonly stack?: string | undefined;
    readonly fingerprint: string;
  } | null;
  readonly attempts: number;
  readonly createdAt: string;
  readonly status: 'pending' | 'replayed' | 'discarded';
  readonly replayedAt: string | null;
  readonly replayedBy: string | null;
  readonly notes: string;
  readonly handler: string;
  readonly tenant: string;
  readonly correlationId: string;
  readonly stream: string;
  readonly revision: number;
  readonly position: string;
  readonly parked: boolean;
  readonly history: readonly ({ readonly at: string; readonly error: string; })[];
  readonly replayRequestedAt: string | null;
  readonly discardedAt: string | null;
  readonly discardedBy: string | null;
  readonly discardReason: string | null;
}

export interface ParkedStream {
  readonly id: string;
  readonly subscription: string;
  readonly stream: string;
  readonly tenant: string;
  readonly since: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly revision: number;
  readonly correlationId: string;
  readonly error: string;
  readonly cause: {
    readonly name?: string | undefined;
    readonly code?: string | undefined;
    readonly stack?: string | undefined;
    readonly fingerprint: string;
  } | null;
  readonly attempts: number;
  readonly replayRequestedAt: string | null;
  readonly waiting: number;
}

export interface Process {
  readonly id: string;
  readonly host?: string | undefined;
  readonly pid?: number | undefined;
  readonly node?: string | undefined;
  readonly version?: string | undefined;
  readonly roles: readonly (string)[];
  readonly startedAt?: string | undefined;
  readonly heardAt?: string | undefined;
  readonly taskTypes?: readonly (string)[] | undefined;
  readonly isThis: boolean;
}

export interface Task {
  readonly id: string;
  readonly type: string;
  readonly tenant?: string | undefined;
  readonly state: 'scheduled' | 'queued' | 'waiting' | 'running' | 'completed' | 'failed' | 'cancelled';
  readonly priority: number;
  readonly payload: unknown;
  readonly labels: Readonly<Record<string, string>>;
  readonly key?: string | undefined;
  readonly concurrencyKey?: string | undefined;
  readonly parentId?: string | undefined;
  readonly attempt: number;
  readonly failures: number;
  readonly fence: number;
  readonly revision: number;
  readonly worker?: string | undefined;
  readonly progress?: { readonly percent: number; readonly message?: string | undefined; } | undefined;
  readonly result?: unknown | undefined;
  readonly error?: {
    readonly message: string;
    readonly name?: string | undefined;
    readonly code?: string | undefined;
    readonly stack?: string | undefined;
    readonly fingerprint?: string | undefined;
    readonly isTerminal?: boolean | undefined;
  } | undefined;
  readonly waitsFor?: unknown | undefined;
  readonly endsAs?: 'failed' | 'cancelled' | undefined;
  readonly cancelAt?: string | undefined;
  readonly steps: readonly ({
    readonly name: string;
    readonly kind: 'step' | 'sleep' | 'event' | 'children' | 'compensation';
    readonly state: 'running' | 'completed' | 'failed';
    readonly attempts: number;
    readonly startedAt: string;
    readonly endedAt?: string | undefined;
    readonly result?: unknown | undefined;
    readonly error?: {
      readonly message: string;
      readonly name?: string | undefined;
      readonly code?: string | undefined;
      readonly stack?: string | undefined;
      readonly fingerprint?: string | undefined;
      readonly isTerminal?: boolean | undefined;
    } | undefined;
  })[];
  readonly history: readonly ({ readonly text?: string | undefined; })[];
  readonly correlationId?: string | undefined;
  readonly causationId?: string | undefined;
  readonly enqueuedAt: string;
  readonly dueAt?: string | undefined;
  readonly claimedAt?: string | undefined;
  readonly updatedAt: string;
  readonly endedAt?: string | undefined;
}

export interface OutboxMessage {
  readonly id: string;
  readonly sourceStreamId: string;
  readonly sourceEventId: string;
  readonly integrationType: string;
  readonly eventType: string;
  readonly payload: unknown;
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
  readonly tenantId?: string | undefined;
  readonly userId?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly orderingKey?: string | undefined;
  readonly dueAt: string;
  readonly attempts: number;
  readonly maxAttempts: number;
  readonly status: 'PENDING' | 'CLAIMED' | 'SENT' | 'FAILED' | 'DEAD' | 'DISCARDED';
  readonly lockedAt?: string | undefined;
  readonly lockedBy?: string | undefined;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly sentAt?: string | undefined;
  readonly lastError?: string | undefined;
  readonly unreadable?: string | undefined;
  readonly cause?: {
    readonly name?: string | undefined;
    readonly code?: string | undefined;
    readonly stack?: string | undefined;
    readonly fingerprint: string;
  } | undefined;
  readonly discarded?: { readonly by: string; readonly reason: string; } | undefined;
  readonly jobs?: readonly ({
    readonly id: string;
    readonly queue: string;
    readonly attempt: number;
    readonly enqueuedAt: string;
    readonly startedAt: string;
    readonly finishedAt?: string | undefined;
    readonly outcome: 'sent' | 'failed' | 'dead' | 'running' | 'lost';
  })[] | undefined;
}

export interface ProjectionRebuild {
  readonly state: 'running' | 'done' | 'failed' | 'cancelled';
  readonly startedAt: string;
  readonly endedAt?: string | undefined;
  readonly progress?: {
    readonly events: number;
    readonly position: string;
    readonly head: string;
    readonly done: number;
    readonly eventsPerSecond: number;
    readonly secondsLeft?: number | undefined;
  } | undefined;
  readonly error?: string | undefined;
}

export interface ProjectionVersion {
  readonly family: string;
  readonly version: number;
  readonly projection: string;
  readonly status: 'building' | 'ready' | 'rebuilding' | 'retiring' | 'retired';
  readonly active: boolean;
  readonly target?: string | undefined;
  readonly changedAtMs: number;
  readonly behind?: number | undefined;
  readonly unit?: 'events' | 'bytes' | undefined;
  readonly seconds?: number | undefined;
  readonly paused: boolean;
  readonly deadLetters: number;
  readonly rebuild?: ProjectionRebuild | undefined;
}

export interface Role {
  readonly role: string;
  readonly title: string;
  readonly engine?: string | undefined;
  readonly url?: string | undefined;
  readonly survives?: string | undefined;
  readonly sharedBy?: string | undefined;
  readonly warning?: string | undefined;
}

export interface Token {
  readonly id: string;
  readonly name: string;
  readonly state: 'live' | 'expired' | 'revoked';
  readonly scopes: readonly ('use' | 'read' | 'append' | 'delete' | 'work' | 'operate' | 'bus' | 'admin')[];
  readonly tenant?: string | undefined;
  readonly createdAt: string;
  readonly createdBy?: string | undefined;
  readonly expiresAt?: string | undefined;
  readonly revokedAt?: string | undefined;
  readonly revokedBy?: string | undefined;
}

export interface RecordedEvent {
  readonly type: string;
  readonly eventId: string;
  readonly occurredAt: string;
  readonly correlationId: string;
  readonly causationId?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  readonly tenant: string;
  readonly aggregate: {
    readonly bc: string;
    readonly type: string;
    readonly id: string;
    readonly version?: number | undefined;
  };
  readonly user?: {
    readonly id?: string | undefined;
    readonly email?: string | undefined;
    readonly name?: string | undefined;
    readonly tenant?: string | undefined;
    readonly tenantId?: string | undefined;
  } | undefined;
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
  readonly payload: Readonly<Record<string, unknown>> | readonly (unknown)[] | string | number | boolean | null;
  readonly stream: string;
  readonly revision: number;
  readonly position: string;
  readonly recordedAt: string;
}

export interface TaskType {
  readonly name: string;
  readonly mode: 'open' | 'paused' | 'draining';
  readonly workers: number;
  readonly stepTimeoutMs: number;
  readonly retries: number;
  readonly priority: number;
  readonly retentionMs: number;
  readonly cron?: unknown | undefined;
}

export interface Api {
  'GET /console/session': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly session: null | {
        readonly name: string;
        readonly kind: 'token' | 'jwt';
        readonly scopes: readonly (string)[];
        readonly tenant?: string | undefined;
        readonly expiresAt?: string | undefined;
        readonly isMasked?: boolean | undefined;
        readonly may: readonly (string)[];
      };
    };
  };
  'POST /console/session': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: { readonly token?: string | undefined; readonly link?: string | undefined; };
    readonly response: undefined;
  };
  'DELETE /console/session': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: undefined;
  };
  'GET /admin/audit': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: {
      readonly actor?: string | undefined;
      readonly action?: string | undefined;
      readonly since?: string | undefined;
      readonly until?: string | undefined;
      readonly limit?: number | undefined;
      readonly cursor?: string | undefined;
    };
    readonly body: undefined;
    readonly response: { readonly items: readonly (AuditEntry)[]; readonly cursor?: string | undefined; };
  };
  'GET /admin/destinations': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly items: readonly ({
        readonly destination: string;
        readonly module: boolean;
        readonly undelivered: number;
        readonly breaker: 'closed' | 'open' | 'half-open';
        readonly openUntil?: string | undefined;
        readonly perSecond?: number | undefined;
        readonly p95Ms?: number | undefined;
        readonly pausedAt?: string | undefined;
        readonly pausedBy?: string | undefined;
      })[];
      readonly cursor?: string | undefined;
    };
  };
  'POST /admin/destinations/test': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: { readonly destination: string; };
    readonly response: { readonly id: string; readonly correlationId: string; };
  };
  'GET /admin/doctor': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly at: string;
      readonly engines: readonly ({
        readonly roles: readonly (string)[];
        readonly url: string;
        readonly findings: readonly ({
          readonly check: string;
          readonly level: 'ok' | 'warning' | 'broken' | 'unknown';
          readonly detail: string;
          readonly remedy?: string | undefined;
        })[];
      })[];
    };
  };
  'GET /admin/failures': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: {
      readonly tenant?: string | undefined;
      readonly source?: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga' | undefined;
      readonly where?: string | undefined;
      readonly type?: string | undefined;
      readonly state?: 'open' | 'resolved' | 'ignored' | 'all' | undefined;
    };
    readonly body: undefined;
    readonly response: {
      readonly items: readonly ({
        readonly fingerprint: string;
        readonly source: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga';
        readonly where: string;
        readonly title: string;
        readonly count: number;
        readonly final: number;
        readonly parked: number;
        readonly tenants: readonly (string)[];
        readonly first: string;
        readonly last: string;
        readonly state: 'open' | 'resolved' | 'ignored';
        readonly decision?: {
          readonly fingerprint: string;
          readonly state: 'open' | 'resolved' | 'ignored';
          readonly note: string;
          readonly by: string;
          readonly at: string;
        } | undefined;
        readonly buckets: readonly (number)[];
      })[];
      readonly looked: number;
      readonly isComplete: boolean;
    };
  };
  'GET /admin/failures/{fingerprint}': {
    readonly params: { readonly fingerprint: string; };
    readonly query: { readonly tenant?: string | undefined; };
    readonly body: undefined;
    readonly response: {
      readonly group: {
        readonly fingerprint: string;
        readonly source: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga';
        readonly where: string;
        readonly title: string;
        readonly count: number;
        readonly final: number;
        readonly parked: number;
        readonly tenants: readonly (string)[];
        readonly first: string;
        readonly last: string;
        readonly state: 'open' | 'resolved' | 'ignored';
        readonly decision?: {
          readonly fingerprint: string;
          readonly state: 'open' | 'resolved' | 'ignored';
          readonly note: string;
          readonly by: string;
          readonly at: string;
        } | undefined;
        readonly buckets: readonly (number)[];
      };
      readonly items: readonly ({
        readonly source: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga';
        readonly id: string;
        readonly where: string;
        readonly type: string;
        readonly error: string;
        readonly cause: {
          readonly name?: string | undefined;
          readonly code?: string | undefined;
          readonly stack?: string | undefined;
          readonly fingerprint: string;
        };
        readonly at: string;
        readonly attempts: number;
        readonly tenant?: string | undefined;
        readonly stream?: string | undefined;
        readonly correlationId?: string | undefined;
        readonly isFinal: boolean;
        readonly isParked: boolean;
      })[];
      readonly until: string;
    };
  };
  'GET /admin/dlq': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: {
      readonly subscription?: string | undefined;
      readonly type?: string | undefined;
      readonly tenant?: string | undefined;
      readonly stream?: string | undefined;
      readonly since?: string | undefined;
      readonly status?: 'pending' | 'replayed' | 'discarded' | 'all' | undefined;
      readonly limit?: number | undefined;
      readonly cursor?: string | undefined;
    };
    readonly body: undefined;
    readonly response: { readonly items: readonly (DeadLetter)[]; readonly cursor?: string | undefined; };
  };
  'GET /admin/dlq/{id}': {
    readonly params: { readonly id: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: DeadLetter;
  };
  'POST /admin/dlq/{id}/discard': {
    readonly params: { readonly id: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: { readonly reason: string; };
    readonly response: DeadLetter;
  };
  'POST /admin/dlq/{id}/replay': {
    readonly params: { readonly id: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: DeadLetter;
  };
  'GET /admin/parked-streams': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: {
      readonly subscription?: string | undefined;
      readonly tenant?: string | undefined;
      readonly stream?: string | undefined;
      readonly limit?: number | undefined;
      readonly cursor?: string | undefined;
    };
    readonly body: undefined;
    readonly response: { readonly items: readonly (ParkedStream)[]; readonly cursor?: string | undefined; };
  };
  'GET /admin/parked-streams/{letter}/events': {
    readonly params: { readonly letter: string; };
    readonly query: { readonly limit?: number | undefined; readonly cursor?: string | undefined; };
    readonly body: undefined;
    readonly response: {
      readonly items: readonly ({
        readonly eventId: string;
        readonly position: string;
        readonly type?: string | undefined;
        readonly revision?: number | undefined;
        readonly recordedAt?: string | undefined;
        readonly correlationId?: string | undefined;
      })[];
      readonly cursor?: string | undefined;
    };
  };
  'GET /admin/processes': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: { readonly items: readonly (Process)[]; readonly cursor?: string | undefined; };
  };
  'POST /admin/dlq/discard': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: {
      readonly ids?: readonly (string)[] | undefined;
      readonly subscription?: string | undefined;
      readonly type?: string | undefined;
      readonly tenant?: string | undefined;
      readonly stream?: string | undefined;
      readonly since?: string | undefined;
      readonly all?: boolean | undefined;
      readonly reason: string;
    };
    readonly response: { readonly discarded: number; };
  };
  'POST /admin/dlq/replay': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: {
      readonly ids?: readonly (string)[] | undefined;
      readonly subscription?: string | undefined;
      readonly type?: string | undefined;
      readonly tenant?: string | undefined;
      readonly stream?: string | undefined;
      readonly since?: string | undefined;
      readonly all?: boolean | undefined;
    };
    readonly response: { readonly requested: number; };
  };
  'POST /admin/jobs/types/{type}/pause': {
    readonly params: { readonly type: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: { readonly type: string; readonly mode: 'open' | 'paused' | 'draining'; };
  };
  'POST /admin/jobs/types/{type}/resume': {
    readonly params: { readonly type: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: { readonly type: string; readonly mode: 'open' | 'paused' | 'draining'; };
  };
  'POST /admin/jobs/{id}/cancel': {
    readonly params: { readonly id: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: { readonly reason?: string | undefined; readonly deadlineMs?: number | undefined; };
    readonly response: { readonly changed: boolean; readonly task: Task; };
  };
  'POST /admin/failures/{fingerprint}/decision': {
    readonly params: { readonly fingerprint: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: {
      readonly state?: 'open' | 'resolved' | 'ignored' | undefined;
      readonly note?: string | undefined;
    };
    readonly response: {
      readonly fingerprint: string;
      readonly state: 'open' | 'resolved' | 'ignored';
      readonly note: string;
      readonly by: string;
      readonly at: string;
    };
  };
  'POST /admin/bulk/preview': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: {
      readonly action: 'replay' | 'retry' | 'discard';
      readonly filter: {
        readonly source?: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga' | undefined;
        readonly where?: string | undefined;
        readonly fingerprint?: string | undefined;
        readonly fingerprints?: readonly (string)[] | undefined;
        readonly tenant?: string | undefined;
        readonly type?: string | undefined;
        readonly ids?: readonly (string)[] | undefined;
      };
    };
    readonly response: {
      readonly matched: number;
      readonly until: string;
      readonly isComplete: boolean;
      readonly samples: readonly ({
        readonly source: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga';
        readonly id: string;
        readonly where: string;
        readonly type: string;
        readonly error: string;
        readonly cause: {
          readonly name?: string | undefined;
          readonly code?: string | undefined;
          readonly stack?: string | undefined;
          readonly fingerprint: string;
        };
        readonly at: string;
        readonly attempts: number;
        readonly tenant?: string | undefined;
        readonly stream?: string | undefined;
        readonly correlationId?: string | undefined;
        readonly isFinal: boolean;
        readonly isParked: boolean;
      })[];
    };
  };
  'GET /admin/bulk/{id}/items': {
    readonly params: { readonly id: string; };
    readonly query: { readonly from?: number | undefined; };
    readonly body: undefined;
    readonly response: {
      readonly items: readonly ({
        readonly source: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga';
        readonly id: string;
        readonly outcome: 'waiting' | 'done' | 'unchanged';
      })[];
      readonly next?: number | undefined;
    };
  };
  'POST /admin/outbox/retry': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: { readonly ids: readonly (string)[]; };
    readonly response: {
      readonly items: readonly ({
        readonly id: string;
        readonly outcome: 'changed' | 'claimed' | 'unchanged';
        readonly status: 'PENDING' | 'CLAIMED' | 'SENT' | 'FAILED' | 'DEAD' | 'DISCARDED';
      })[];
    };
  };
  'POST /admin/outbox/discard': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: { readonly ids: readonly (string)[]; readonly reason: string; };
    readonly response: {
      readonly items: readonly ({
        readonly id: string;
        readonly outcome: 'changed' | 'claimed' | 'unchanged';
        readonly status: 'PENDING' | 'CLAIMED' | 'SENT' | 'FAILED' | 'DEAD' | 'DISCARDED';
      })[];
    };
  };
  'POST /admin/bulk': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: {
      readonly action: 'replay' | 'retry' | 'discard';
      readonly filter: {
        readonly source?: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga' | undefined;
        readonly where?: string | undefined;
        readonly fingerprint?: string | undefined;
        readonly fingerprints?: readonly (string)[] | undefined;
        readonly tenant?: string | undefined;
        readonly type?: string | undefined;
        readonly ids?: readonly (string)[] | undefined;
      };
      readonly until: string;
      readonly matched: number;
      readonly reason?: string | undefined;
    };
    readonly response: {
      readonly id: string;
      readonly action: 'replay' | 'retry' | 'discard';
      readonly filter: {
        readonly source?: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga' | undefined;
        readonly where?: string | undefined;
        readonly fingerprint?: string | undefined;
        readonly fingerprints?: readonly (string)[] | undefined;
        readonly tenant?: string | undefined;
        readonly type?: string | undefined;
        readonly ids?: readonly (string)[] | undefined;
      };
      readonly until: string;
      readonly matched: number;
      readonly by: string;
      readonly reason: string;
      readonly state: 'scheduled' | 'queued' | 'waiting' | 'running' | 'completed' | 'failed' | 'cancelled';
      readonly done: number;
      readonly unchanged: number;
      readonly startedAt: string;
      readonly endedAt?: string | undefined;
      readonly error?: string | undefined;
    };
  };
  'GET /admin/bulk/{id}': {
    readonly params: { readonly id: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly id: string;
      readonly action: 'replay' | 'retry' | 'discard';
      readonly filter: {
        readonly source?: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga' | undefined;
        readonly where?: string | undefined;
        readonly fingerprint?: string | undefined;
        readonly fingerprints?: readonly (string)[] | undefined;
        readonly tenant?: string | undefined;
        readonly type?: string | undefined;
        readonly ids?: readonly (string)[] | undefined;
      };
      readonly until: string;
      readonly matched: number;
      readonly by: string;
      readonly reason: string;
      readonly state: 'scheduled' | 'queued' | 'waiting' | 'running' | 'completed' | 'failed' | 'cancelled';
      readonly done: number;
      readonly unchanged: number;
      readonly startedAt: string;
      readonly endedAt?: string | undefined;
      readonly error?: string | undefined;
    };
  };
  'POST /admin/bulk/{id}/cancel': {
    readonly params: { readonly id: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly id: string;
      readonly action: 'replay' | 'retry' | 'discard';
      readonly filter: {
        readonly source?: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga' | undefined;
        readonly where?: string | undefined;
        readonly fingerprint?: string | undefined;
        readonly fingerprints?: readonly (string)[] | undefined;
        readonly tenant?: string | undefined;
        readonly type?: string | undefined;
        readonly ids?: readonly (string)[] | undefined;
      };
      readonly until: string;
      readonly matched: number;
      readonly by: string;
      readonly reason: string;
      readonly state: 'scheduled' | 'queued' | 'waiting' | 'running' | 'completed' | 'failed' | 'cancelled';
      readonly done: number;
      readonly unchanged: number;
      readonly startedAt: string;
      readonly endedAt?: string | undefined;
      readonly error?: string | undefined;
    };
  };
  'POST /admin/jobs/{id}/retry': {
    readonly params: { readonly id: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: { readonly fromStep?: string | undefined; };
    readonly response: { readonly changed: boolean; readonly task: Task; };
  };
  'GET /admin/outbox': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: {
      readonly destination?: string | undefined;
      readonly tenant?: string | undefined;
      readonly since?: string | undefined;
      readonly status?: 'PENDING' | 'CLAIMED' | 'SENT' | 'FAILED' | 'DEAD' | 'DISCARDED' | undefined;
      readonly limit?: number | undefined;
      readonly cursor?: string | undefined;
    };
    readonly body: undefined;
    readonly response: { readonly items: readonly (OutboxMessage)[]; readonly cursor?: string | undefined; };
  };
  'GET /admin/outbox/counts': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly PENDING: number;
      readonly CLAIMED: number;
      readonly SENT: number;
      readonly FAILED: number;
      readonly DEAD: number;
      readonly DISCARDED: number;
    };
  };
  'GET /admin/outbox/{id}': {
    readonly params: { readonly id: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: OutboxMessage;
  };
  'POST /admin/outbox/pause': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: { readonly destination: string; };
    readonly response: { readonly destination: string; readonly paused: boolean; readonly changed: boolean; };
  };
  'POST /admin/outbox/replay': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: {
      readonly ids?: readonly (string)[] | undefined;
      readonly destination?: string | undefined;
      readonly tenant?: string | undefined;
      readonly since?: string | undefined;
      readonly all?: boolean | undefined;
    };
    readonly response: { readonly replayed: number; };
  };
  'POST /admin/outbox/resume': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: { readonly destination: string; };
    readonly response: { readonly destination: string; readonly paused: boolean; readonly changed: boolean; };
  };
  'GET /admin/outbox/{id}/attempts': {
    readonly params: { readonly id: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly items: readonly ({
        readonly at: string;
        readonly durationMs: number;
        readonly outcome: 'sent' | 'failed' | 'dead';
        readonly status?: number | undefined;
        readonly headers?: Readonly<Record<string, string>> | undefined;
        readonly answer?: string | undefined;
        readonly error?: string | undefined;
        readonly cause?: {
          readonly name?: string | undefined;
          readonly code?: string | undefined;
          readonly stack?: string | undefined;
          readonly fingerprint: string;
        } | undefined;
      })[];
    };
  };
  'GET /admin/overview': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly at: string;
      readonly head: string;
      readonly subscriptions: readonly ({
        readonly subscription: string;
        readonly state: 'lost' | 'paused' | 'running' | 'stopped';
        readonly shards: number;
        readonly workers: number;
        readonly deadLetters: number;
        readonly waiting: number;
        readonly position: string;
        readonly head: string;
        readonly behind: number;
        readonly unit: 'events' | 'bytes';
        readonly seconds: number;
      })[];
      readonly outbox?: {
        readonly counts: {
          readonly PENDING: number;
          readonly CLAIMED: number;
          readonly SENT: number;
          readonly FAILED: number;
          readonly DEAD: number;
          readonly DISCARDED: number;
        };
        readonly paused: readonly (string)[];
      } | undefined;
      readonly jobs?: {
        readonly waiting: number;
        readonly running: number;
        readonly failed: number;
        readonly done: number;
      } | undefined;
      readonly failures: {
        readonly 'dead-letter': number;
        readonly delivery: number;
        readonly job: number;
        readonly bus: number;
        readonly saga: number;
      };
      readonly failing: readonly ({ readonly subscription: string; readonly failures: number; readonly reason: string; })[];
      readonly series: readonly ({
        readonly at: string;
        readonly eventsPerSecond?: number | undefined;
        readonly lagSeconds?: number | undefined;
        readonly failures?: number | undefined;
        readonly outbox?: number | undefined;
        readonly jobs?: number | undefined;
      })[];
    };
  };
  'GET /admin/projections': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: { readonly items: readonly (ProjectionVersion)[]; readonly cursor?: string | undefined; };
  };
  'GET /admin/resolve/{id}': {
    readonly params: { readonly id: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly items: readonly ({
        readonly kind: 'stream' | 'trace' | 'event' | 'delivery' | 'dead-letter' | 'bus-dead-letter' | 'failure' | 'saga' | 'subscription' | 'job' | 'token';
        readonly id: string;
        readonly title: string;
        readonly correlationId?: string | undefined;
        readonly stream?: string | undefined;
        readonly revision?: number | undefined;
        readonly fingerprint?: string | undefined;
      })[];
      readonly eventsSearched: number;
      readonly sagasSearched: number;
    };
  };
  'GET /admin/subscriptions': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly items: readonly ({
        readonly subscription: string;
        readonly state: 'lost' | 'paused' | 'running' | 'stopped';
        readonly shards: number;
        readonly workers: number;
        readonly deadLetters: number;
        readonly waiting: number;
        readonly position: string;
        readonly head: string;
        readonly behind: number;
        readonly unit: 'events' | 'bytes';
        readonly seconds: number;
      })[];
      readonly cursor?: string | undefined;
    };
  };
  'GET /admin/subscriptions/{name}': {
    readonly params: { readonly name: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly subscription: {
        readonly subscription: string;
        readonly state: 'lost' | 'paused' | 'running' | 'stopped';
        readonly shards: number;
        readonly workers: number;
        readonly deadLetters: number;
        readonly waiting: number;
        readonly position: string;
        readonly head: string;
        readonly behind: number;
        readonly unit: 'events' | 'bytes';
        readonly seconds: number;
      };
      readonly shards: readonly ({
        readonly shard: number;
        readonly position?: string | undefined;
        readonly owner?: string | undefined;
        readonly leaseMs?: number | undefined;
      })[];
    };
  };
  'POST /admin/subscriptions/{name}/pause': {
    readonly params: { readonly name: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: { readonly subscription: string; readonly paused: boolean; };
  };
  'POST /admin/subscriptions/{name}/resume': {
    readonly params: { readonly name: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: { readonly subscription: string; readonly paused: boolean; };
  };
  'GET /admin/system': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly roles: readonly (Role)[];
      readonly modules: readonly ({
        readonly name: string;
        readonly aggregates: readonly (string)[];
        readonly projections: readonly (string)[];
        readonly sagas: readonly (string)[];
      })[];
      readonly process: {
        readonly host: string;
        readonly pid: number;
        readonly node: string;
        readonly startedAt: string;
        readonly memoryBytes: number;
        readonly roles: readonly (string)[];
      };
    };
  };
  'GET /admin/tokens': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: { readonly items: readonly (Token)[]; readonly cursor?: string | undefined; };
  };
  'POST /admin/tokens/{token}/revoke': {
    readonly params: { readonly token: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: Token;
  };
  'GET /admin/traces/{correlationId}': {
    readonly params: { readonly correlationId: string; };
    readonly query: { readonly waitMs?: number | undefined; };
    readonly body: undefined;
    readonly response: {
      readonly correlationId: string;
      readonly complete: boolean;
      readonly truncated: boolean;
      readonly missing: number;
      readonly startedAt: string | null;
      readonly endedAt: string | null;
      readonly durationMs: number;
      readonly nodes: readonly ({
        readonly id: string;
        readonly parent: string | null;
        readonly depth: number;
        readonly offsetMs: number | null;
        readonly kind: 'command';
        readonly command: string;
        readonly causationId: string | null;
        readonly idempotencyKey: string | null;
        readonly tenant: string;
        readonly stream: string;
        readonly at: string;
        readonly durationMs: number;
      } | {
        readonly id: string;
        readonly parent: string | null;
        readonly depth: number;
        readonly offsetMs: number | null;
        readonly kind: 'event';
        readonly type: string;
        readonly eventId: string;
        readonly causationId: string | null;
        readonly tenant: string;
        readonly stream: string;
        readonly revision: number;
        readonly position: string;
        readonly occurredAt: string;
        readonly recordedAt: string;
      } | {
        readonly id: string;
        readonly parent: string | null;
        readonly depth: number;
        readonly offsetMs: number | null;
        readonly kind: 'handler';
        readonly subscription: string;
        readonly state: 'passed' | 'pending' | 'waiting' | 'dead' | 'discarded' | 'replayed';
        readonly failures: number | null;
        readonly error: string | null;
        readonly deadLetter: string | null;
        readonly at: string | null;
      } | {
        readonly id: string;
        readonly parent: string | null;
        readonly depth: number;
        readonly offsetMs: number | null;
        readonly kind: 'delivery';
        readonly message: string;
        readonly destination: string;
        readonly type: string;
        readonly status: string;
        readonly attempts: number;
        readonly attemptsMax: number;
        readonly enqueuedAt: string;
        readonly dueAt: string;
        readonly sentAt: string | null;
        readonly durationMs: number | null;
        readonly error: string | null;
      } | {
        readonly id: string;
        readonly parent: string | null;
        readonly depth: number;
        readonly offsetMs: number | null;
        readonly kind: 'job';
        readonly job: string;
        readonly queue: string;
        readonly attempt: number;
        readonly outcome: 'sent' | 'failed' | 'dead' | 'running' | 'lost';
        readonly enqueuedAt: string;
        readonly startedAt: string;
        readonly finishedAt: string | null;
        readonly waitedMs: number;
        readonly durationMs: number | null;
      } | {
        readonly id: string;
        readonly parent: string | null;
        readonly depth: number;
        readonly offsetMs: number | null;
        readonly kind: 'task';
        readonly task: string;
        readonly type: string;
        readonly state: string;
        readonly attempt: number;
        readonly causationId: string | null;
        readonly enqueuedAt: string;
        readonly startedAt: string | null;
        readonly endedAt: string | null;
        readonly dueAt: string | null;
        readonly waitsFor: string | null;
        readonly durationMs: number | null;
        readonly error: string | null;
      } | {
        readonly id: string;
        readonly parent: string | null;
        readonly depth: number;
        readonly offsetMs: number | null;
        readonly kind: 'message';
        readonly message: string;
        readonly topic: string;
        readonly causationId: string | null;
        readonly storedAt: string;
      } | {
        readonly id: string;
        readonly parent: string | null;
        readonly depth: number;
        readonly offsetMs: number | null;
        readonly kind: 'saga';
        readonly saga: string;
        readonly key: string;
        readonly stream: string;
        readonly status: string;
        readonly reason: string | null;
        readonly timers: readonly ({ readonly timer: string; readonly dueAt: string; })[];
      })[];
    };
  };
  'GET /api/v1/events': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: {
      readonly types?: readonly (string)[] | undefined;
      readonly typePrefix?: string | undefined;
      readonly category?: string | undefined;
      readonly tenant?: string | undefined;
      readonly after?: string | undefined;
      readonly direction?: 'forwards' | 'backwards' | undefined;
      readonly limit?: number | undefined;
      readonly cursor?: string | undefined;
    };
    readonly body: undefined;
    readonly response: { readonly items: readonly (RecordedEvent)[]; readonly cursor?: string | undefined; };
  };
  'GET /api/v1/events/search': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: {
      readonly types?: readonly (string)[] | undefined;
      readonly typePrefix?: string | undefined;
      readonly category?: string | undefined;
      readonly tenant?: string | undefined;
      readonly stream?: string | undefined;
      readonly from?: string | undefined;
      readonly until?: string | undefined;
      readonly correlationId?: string | undefined;
      readonly payload?: readonly (string)[] | undefined;
      readonly limit?: number | undefined;
      readonly cursor?: string | undefined;
    };
    readonly body: undefined;
    readonly response: {
      readonly items: readonly (RecordedEvent)[];
      readonly cursor?: string | undefined;
      readonly searched: {
        readonly events: number;
        readonly back?: string | undefined;
        readonly by: 'events' | 'stream' | 'trace-index';
        readonly complete: boolean;
      };
    };
  };
  'GET /api/v1/jobs': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: {
      readonly type?: string | undefined;
      readonly state?: readonly ('scheduled' | 'queued' | 'waiting' | 'running' | 'completed' | 'failed' | 'cancelled')[] | undefined;
      readonly tenant?: string | undefined;
      readonly label?: readonly (string)[] | undefined;
      readonly parentId?: string | undefined;
      readonly enqueuedFrom?: string | undefined;
      readonly enqueuedBefore?: string | undefined;
      readonly updatedFrom?: string | undefined;
      readonly updatedBefore?: string | undefined;
      readonly limit?: number | undefined;
      readonly cursor?: string | undefined;
    };
    readonly body: undefined;
    readonly response: { readonly items: readonly (Task)[]; readonly cursor?: string | undefined; };
  };
  'GET /api/v1/jobs/counts': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly items: readonly ({ readonly type: string; readonly states: Readonly<Record<string, number>>; })[];
      readonly cursor?: string | undefined;
    };
  };
  'GET /api/v1/jobs/types': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: { readonly items: readonly (TaskType)[]; readonly cursor?: string | undefined; };
  };
  'GET /api/v1/jobs/workers': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly items: readonly ({
        readonly worker: string;
        readonly aliveUntil: string;
        readonly isAlive: boolean;
        readonly about?: unknown | undefined;
      })[];
      readonly cursor?: string | undefined;
    };
  };
  'GET /api/v1/jobs/{id}': {
    readonly params: { readonly id: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly task: Task;
      readonly timeline: readonly ({
        readonly at: string;
        readonly what: string;
        readonly step?: string | undefined;
        readonly worker?: string | undefined;
        readonly text?: string | undefined;
      })[];
    };
  };
  'GET /api/v1/streams/{stream}/events': {
    readonly params: { readonly stream: string; };
    readonly query: {
      readonly from?: number | undefined;
      readonly direction?: 'forwards' | 'backwards' | undefined;
      readonly limit?: number | undefined;
      readonly cursor?: number | undefined;
    };
    readonly body: undefined;
    readonly response: { readonly items: readonly (RecordedEvent)[]; readonly cursor?: string | undefined; };
  };
}
