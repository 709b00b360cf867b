// The table of scopes. Routes, commands, gRPC methods and WebSocket messages name one of these scopes, and docs/scopes.md
// lists who may call what.

export type TokenScope =
  | 'use'
  | 'read'
  | 'append'
  | 'delete'
  | 'work'
  | 'operate'
  | 'bus'
  | 'admin';

interface ScopeRow {
  readonly allows: string;
  /** Scopes that it includes, all of them listed. */
  readonly includes: readonly TokenScope[];
}

/** What each scope is for; `admin` includes all of them. */
export const scopeTable: Readonly<Record<TokenScope, ScopeRow>> = {
  use: {
    allows: 'routes and messages that modules offer to people, by the rules of the module',
    includes: [],
  },
  read: {
    allows:
      'streams, documents, jobs and topics; dead letters, outbox, subscriptions, projections, sagas and traces',
    includes: ['use'],
  },
  append: {
    allows: 'events, jobs and topic messages, and the commands that modules open to it',
    includes: ['use'],
  },
  delete: {
    allows: 'removal of streams, and their metadata, which can remove events',
    includes: [],
  },
  work: { allows: 'the protocol of task workers, and nothing else', includes: [] },
  operate: {
    allows:
      'dead letters, outbox, subscriptions, sagas and jobs: replay, discard, pause, resume, retry, cancel',
    // An operator must see what to fix.
    includes: ['read', 'use'],
  },
  bus: { allows: 'reserved for routes of the message bus; grants nothing today', includes: [] },
  admin: {
    allows: 'everything, including tokens, the audit, system streams and persistent subscriptions',
    includes: [],
  },
};

export const tokenScopes = Object.keys(scopeTable) as readonly TokenScope[];

/** Whether credentials with these scopes may call something that needs `needed`. */
export function allowsScope(scopes: readonly TokenScope[], needed: TokenScope): boolean {
  return scopes.some(
    (scope) => scope === needed || scope === 'admin' || scopeTable[scope].includes.includes(needed),
  );
}
