// A segment of an archive: messages of one subject as compressed NDJSON, and an index that describes them. The index
// is written last, so a segment without an index is incomplete.

import { createHash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { MillraceError } from '../foundation/error.ts';
import type { StoredMessage } from './bus.ts';

export interface SegmentIndex {
  readonly subject: string;
  readonly firstSequence: string;
  readonly lastSequence: string;
  readonly firstStoredAt: string;
  readonly lastStoredAt: string;
  readonly count: number;
  /** The compressed size. */
  readonly bytes: number;
  /** The hash of the compressed bytes, in hex. */
  readonly sha256: string;
  /** The name of the object with the messages. */
  readonly data: string;
}

interface Line {
  readonly sequence: string;
  readonly storedAt: string;
  /** Set if the bytes are valid UTF-8; otherwise `base64` is set. */
  readonly text?: string;
  readonly base64?: string;
}

export const indexSuffix = '.index.json';

/** `gbe.events.audit.change` → `gbe/events/audit/change/`. */
export function archiveFolder(subject: string): string {
  return `${subject.split('.').map(safeName).join('/')}/`;
}

/** A token may contain characters that are not allowed in a file name. */
function safeName(token: string): string {
  return encodeURIComponent(token).replaceAll('.', '%2E').replaceAll('*', '%2A');
}

export function encodeSegment(messages: readonly StoredMessage[]): {
  readonly index: SegmentIndex;
  readonly data: Uint8Array;
} {
  const [first, last] = [messages[0], messages.at(-1)];
  if (first === undefined || last === undefined)
    throw new TypeError('a segment needs at least one message');
  const lines = messages.map((each) => `${JSON.stringify(toLine(each))}\n`);
  const data = gzipSync(lines.join(''));
  const sha256 = createHash('sha256').update(data).digest('hex');
  const { subject } = first;
  return {
    data,
    index: {
      subject,
      firstSequence: first.sequence,
      lastSequence: last.sequence,
      firstStoredAt: first.storedAt.toISOString(),
      lastStoredAt: last.storedAt.toISOString(),
      count: messages.length,
      bytes: data.length,
      sha256,
      // The hash keeps two concurrent archive runs from overwriting each other's data.
      data: `${archiveFolder(subject)}${first.sequence}.${sha256.slice(0, 12)}.ndjson.gz`,
    },
  };
}

/** Rejects messages that do not match the index with `STORE_CORRUPT`. */
export function decodeSegment(index: SegmentIndex, data: Uint8Array | undefined): StoredMessage[] {
  const { subject, count, sha256 } = index;
  if (data === undefined) throw corrupt(index, 'its messages are missing');
  if (createHash('sha256').update(data).digest('hex') !== sha256) {
    throw corrupt(index, 'the hash of its messages does not match its index');
  }
  const lines = gunzipSync(data).toString('utf8').split('\n').slice(0, -1);
  if (lines.length !== count)
    throw corrupt(index, `it contains ${lines.length} of ${count} messages`);
  return lines.map((line) => toMessage(subject, JSON.parse(line) as Line));
}

export function indexName(subject: string, firstSequence: string): string {
  return `${archiveFolder(subject)}${firstSequence}${indexSuffix}`;
}

function toLine({ sequence, storedAt, data }: StoredMessage): Line {
  const common = { sequence, storedAt: storedAt.toISOString() };
  try {
    return {
      ...common,
      text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data),
    };
  } catch {
    return { ...common, base64: Buffer.from(data).toString('base64') };
  }
}

function toMessage(subject: string, { sequence, storedAt, text, base64 }: Line): StoredMessage {
  const data = text === undefined ? Buffer.from(base64 ?? '', 'base64') : Buffer.from(text, 'utf8');
  return { subject, sequence, storedAt: new Date(storedAt), data };
}

function corrupt({ data }: SegmentIndex, what: string): MillraceError {
  return new MillraceError('STORE_CORRUPT', `archive segment ${data} is damaged: ${what}`, {
    details: { segment: data },
  });
}
