// The keys of the task bucket. Each process keeps the keys that begin with `state` in its index.

import { createHash } from 'node:crypto';

/** The keys that the reader of the bucket follows. */
export const statePattern = 'state.>';

const encoded = (text: string): string =>
  text === '' ? '_' : Buffer.from(text).toString('base64url');
const decoded = (token: string): string =>
  token === '_' ? '' : Buffer.from(token, 'base64url').toString();
const hashed = (text: string): string => createHash('sha256').update(text).digest('base64url');

export const taskKeys = {
  job: (id: string) => `state.job.${id}`,
  mode: (type: string) => `state.mode.${type}`,
  beat: (worker: string) => `state.beat.${encoded(worker)}`,
  about: (worker: string) => `state.about.${encoded(worker)}`,
  /** The rate limit of a type, or of a tenant of the type. */
  rate: (type: string, tenant: string | undefined) =>
    tenant === undefined ? `state.rate.${type}` : `state.rate.${type}.${encoded(tenant)}`,
  /** One of the slots of a concurrency key. */
  slot: (type: string, key: string, at: number) => `state.slot.${type}.${hashed(key)}.${at}`,
  dedupe: (type: string, key: string) => `state.dedupe.${type}.${hashed(key)}`,
  sync: (processId: string) => `state.sync.${processId}`,
  value: (id: string, token: string) => `value.${id}.${token}`,
} as const;

/** `state.job.email-send.0199…` → `job` and `email-send.0199…`. */
export function partsOf(key: string): { readonly kind: string; readonly rest: string } {
  const end = key.indexOf('.', 6);
  return { kind: key.slice(6, end), rest: key.slice(end + 1) };
}

/** Heartbeats and syncs make no job available. A waiting claim writes them, so they must not wake claims. */
export function isAboutProcess(key: string): boolean {
  return ['beat', 'about', 'sync'].includes(partsOf(key).kind);
}

export const workerOf = decoded;

/** `value.email-send.0199….<token>` → `email-send.0199…`. */
export function idOfValue(key: string): string {
  return key.slice('value.'.length, key.lastIndexOf('.'));
}
