// Generated from the OpenAPI document by `npm run generate`.

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
  'GET /admin/failures': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: {
      readonly tenant?: string | undefined;
      readonly source?: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga' | undefined;
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
  'POST /admin/bulk': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: {
      readonly action: 'replay' | 'discard';
      readonly filter: {
        readonly source?: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga' | undefined;
        readonly where?: string | undefined;
        readonly fingerprint?: string | undefined;
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
      readonly action: 'replay' | 'discard';
      readonly filter: {
        readonly source?: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga' | undefined;
        readonly where?: string | undefined;
        readonly fingerprint?: string | undefined;
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
      readonly action: 'replay' | 'discard';
      readonly filter: {
        readonly source?: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga' | undefined;
        readonly where?: string | undefined;
        readonly fingerprint?: string | undefined;
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
      readonly action: 'replay' | 'discard';
      readonly filter: {
        readonly source?: 'dead-letter' | 'delivery' | 'job' | 'bus' | 'saga' | undefined;
        readonly where?: string | undefined;
        readonly fingerprint?: string | undefined;
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
    readonly response: {
      readonly changed: boolean;
      readonly task: {
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
        readonly history: readonly (unknown)[];
        readonly correlationId?: string | undefined;
        readonly causationId?: string | undefined;
        readonly enqueuedAt: string;
        readonly dueAt?: string | undefined;
        readonly claimedAt?: string | undefined;
        readonly updatedAt: string;
        readonly endedAt?: string | undefined;
      };
    };
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
        };
        readonly paused: readonly (string)[];
      } | undefined;
      readonly jobs?: {
        readonly waiting: number;
        readonly running: number;
        readonly failed: number;
        readonly done: number;
      } | undefined;
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
  'GET /admin/resolve/{id}': {
    readonly params: { readonly id: string; };
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly items: readonly ({
        readonly kind: 'stream' | 'trace' | 'event' | 'delivery' | 'dead-letter' | 'job';
        readonly id: string;
        readonly title: string;
        readonly correlationId?: string | undefined;
        readonly stream?: string | undefined;
        readonly revision?: number | undefined;
      })[];
      readonly eventsSearched: number;
    };
  };
  'GET /admin/system': {
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: undefined;
    readonly response: {
      readonly roles: readonly ({
        readonly role: string;
        readonly title: string;
        readonly engine?: string | undefined;
        readonly url?: string | undefined;
        readonly survives?: string | undefined;
        readonly sharedBy?: string | undefined;
        readonly warning?: string | undefined;
      })[];
    };
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
    readonly response: {
      readonly items: readonly ({
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
      })[];
      readonly cursor?: string | undefined;
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
    readonly response: {
      readonly items: readonly ({
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
      })[];
      readonly cursor?: string | undefined;
    };
  };
}
