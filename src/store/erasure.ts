// Crypto-shredding: payloads about a person are encrypted with the person's key, and forgetting the
// person destroys the key. Streams, revisions and projections stay intact.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { DomainEventEnvelope } from '../contracts/envelope.ts';
import { MillraceError } from '../foundation/error.ts';

/** The envelope header that names the person whose data the payload contains. */
export const subjectHeader = 'dataSubject';

/** Replaces a payload whose subject was forgotten. */
export interface Forgotten {
  readonly $forgotten: { readonly subject: string; readonly forgottenAt: string };
}

/**
 * Whether a payload was erased because its subject was forgotten.
 *
 * @example
 * import { isForgotten } from 'millrace/store';
 *
 * const nameOf = (payload: { readonly name: string }) => (isForgotten(payload) ? '(erased)' : payload.name);
 */
export function isForgotten(payload: unknown): payload is Forgotten {
  return typeof payload === 'object' && payload !== null && '$forgotten' in payload;
}

/** The system event that makes subscriptions erase their copies of a stream's personal data. */
export const subjectForgottenType = '$subject-forgotten';

/** Without $: only administrators of a KurrentDB server may write to streams whose name starts with $. */
const forgottenPrefix = 'millrace.forgotten-';

/** The stream of the system events about a stream with erased events. */
export function forgottenStream(stream: string): string {
  return forgottenPrefix + stream;
}

/** `millrace.forgotten-<stream>` → `<stream>`; other names stay. */
export function withoutForgottenPrefix(stream: string): string {
  return stream.startsWith(forgottenPrefix) ? stream.slice(forgottenPrefix.length) : stream;
}

/** In KurrentDB: the streams of keys. Without $, as above. */
export const keyStreamPrefix = 'millrace.subjectKeys-';

/** Key streams are never read as events: with the keys, encrypted payloads could be read. */
export function isKeyStream(stream: string): boolean {
  return stream.startsWith(keyStreamPrefix) || stream.startsWith(`$$${keyStreamPrefix}`);
}

export function subjectOf(envelope: Pick<DomainEventEnvelope, 'headers'>): string | undefined {
  const subject = envelope.headers?.[subjectHeader];
  return typeof subject === 'string' && subject !== '' ? subject : undefined;
}

export function subjectForgotten(subject: string): MillraceError {
  return new MillraceError(
    'SUBJECT_FORGOTTEN',
    `'${subject}' was forgotten: new personal data needs a new subject id`,
    { details: { subject } },
  );
}

export interface SubjectKeys {
  /** The keys of the subjects; a forgotten subject has none, a missing key is created with `create`. */
  get(
    subjects: readonly string[],
    options: {
      readonly create: boolean;
      /** The caller's transaction that contains the append; the engine may ignore it. */
      readonly transaction?: unknown;
    },
  ): Promise<ReadonlyMap<string, SubjectKey>>;
  /** Destroys the key permanently; true if there was one. */
  forget(subject: string, nowMs: number): Promise<boolean>;
}

export type SubjectKey =
  | { readonly kind: 'key'; readonly key: Uint8Array }
  | { readonly kind: 'forgotten'; readonly forgottenAtMs: number };

interface Sealed {
  readonly $sealed: string;
}

const ivBytes = 12;
const tagBytes = 16;

/** AES-256-GCM bound to the event id: a sealed payload cannot be moved to another event. */
export function seal(json: string, key: Uint8Array, eventId: string): string {
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(eventId));
  const text = Buffer.concat([cipher.update(json, 'utf8'), cipher.final()]);
  const sealed: Sealed = {
    $sealed: Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64'),
  };
  return JSON.stringify(sealed);
}

/** The decrypted payload, or the forgotten value. */
export function unseal(
  payload: unknown,
  event: { readonly eventId: string; readonly subject: string },
  key: SubjectKey | undefined,
): unknown {
  if (!isSealed(payload)) return payload;
  if (key?.kind === 'key') return JSON.parse(open(payload.$sealed, key.key, event.eventId));
  return forgottenValue(event.subject, key);
}

export function forgottenValue(subject: string, key: SubjectKey | undefined): Forgotten {
  const forgottenAtMs = key?.kind === 'forgotten' ? key.forgottenAtMs : 0;
  return { $forgotten: { subject, forgottenAt: new Date(forgottenAtMs).toISOString() } };
}

export function newSubjectKey(): Uint8Array {
  return randomBytes(32);
}

export function isSealed(payload: unknown): payload is Sealed {
  return (
    typeof payload === 'object' &&
    payload !== null &&
    '$sealed' in payload &&
    typeof payload.$sealed === 'string'
  );
}

function open(sealed: string, key: Uint8Array, eventId: string): string {
  const bytes = Buffer.from(sealed, 'base64');
  const iv = bytes.subarray(0, ivBytes);
  const tag = bytes.subarray(ivBytes, ivBytes + tagBytes);
  try {
    // A shorter tag would be easier to forge.
    const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: tagBytes })
      .setAAD(Buffer.from(eventId))
      .setAuthTag(tag);
    return (
      decipher.update(bytes.subarray(ivBytes + tagBytes), undefined, 'utf8') +
      decipher.final('utf8')
    );
  } catch (error) {
    throw new MillraceError(
      'STORE_CORRUPT',
      `the encrypted payload of event ${eventId} cannot be decrypted`,
      {
        cause: error,
        details: { eventId },
      },
    );
  }
}

/**
 * The subject of a caller that is bound to a tenant. A subject that does not name the tenant before its last part
 * (`notify:customer:core:c-1`) becomes `core:<subject>`: otherwise the caller could learn that a person of another
 * tenant was erased, and lose its own data with that person.
 */
export function tenantSubject(subject: string, tenant: string | undefined): string {
  if (tenant === undefined || subject.split(':').slice(0, -1).includes(tenant)) return subject;
  return `${tenant}:${subject}`;
}

export function withTenantSubject(
  event: DomainEventEnvelope,
  tenant: string | undefined,
): DomainEventEnvelope {
  const subject = subjectOf(event);
  if (subject === undefined || tenant === undefined) return event;
  const headers = { ...event.headers, [subjectHeader]: tenantSubject(subject, tenant) };
  return { ...event, headers };
}
