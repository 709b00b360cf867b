// The users, tokens and rules of the servers that run the cases.

export const benToken = 'tk_benbenbenbenbenbenbenbenbenbe';

export const users = [
  { name: 'root', password: 'rootpass', role: 'admin' },
  { name: 'ben', password: 'benpass', role: 'user' },
] as const;

export const tokens = [{ user: 'ben', token: benToken }] as const;

export const rules = [
  { user: '*', topic: 'closed-*', permission: 'deny' },
  { user: '*', topic: 'news-*', permission: 'read-only' },
  { user: '*', topic: 'drop-*', permission: 'write-only' },
  { user: 'ben', topic: 'closed-ben-*', permission: 'read-write' },
  { user: 'ben', topic: 'closed-news-*', permission: 'read-only' },
] as const;
