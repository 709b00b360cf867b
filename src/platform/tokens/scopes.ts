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

/** What each scope is for. */
export const scopeTable: Readonly<Record<TokenScope, string>> = {
  use: 'routes and messages that modules offer to people, by the rules of the module',
  read: 'streams, documents, jobs and topics; includes `use`',
  append:
    'events, jobs and topic messages, and the commands that modules open to it; includes `use`',
  delete: 'removal of streams, and their metadata, which can remove events',
  work: 'the protocol of task workers, and nothing else',
  operate:
    'dead letters, outbox, subscriptions, sagas and jobs: list, replay, discard, pause, resume, retry, cancel',
  bus: 'the message bus',
  admin: 'everything, including tokens, the audit, system streams and persistent subscriptions',
};

export const tokenScopes = Object.keys(scopeTable) as readonly TokenScope[];

/** Whether credentials with these scopes may call something that needs `needed`. */
export function allowsScope(scopes: readonly TokenScope[], needed: TokenScope): boolean {
  if (scopes.includes(needed) || scopes.includes('admin')) return true;
  // Programs that read or append call the routes of modules as well; workers and operators do not.
  return needed === 'use' && (scopes.includes('read') || scopes.includes('append'));
}
