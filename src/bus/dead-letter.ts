// Dead letters: messages that a group could not handle, in a stream per group; listed, replayed and discarded.

import { parseStored } from '../foundation/parse-json.ts';
import type { Bus } from './bus.ts';
import type { BusEngine, StoredEntry } from './bus-engine.ts';
import { busLimits as limits } from './bus-limits.ts';
import { checkGroupName, invalid, checkInteger } from './check-bus.ts';
import { compareSequences, isSequence } from './sequence.ts';

/**
 * `malformed`: no valid transport envelope. `payload-invalid`: rejected by the schema of the subject.
 * `max-deliveries`: delivered as often as the group allows. `terminated`: its handler called `term` or threw `Terminal`.
 */
export type DeadLetterCause = 'malformed' | 'payload-invalid' | 'max-deliveries' | 'terminated';

export interface BusDeadLetter {
  /** The sequence in the dead-letter stream. */
  readonly sequence: string;
  readonly group: string;
  readonly cause: DeadLetterCause;
  /** The validation error, or the error of the last attempt. */
  readonly reason: string;
  readonly origin: { readonly subject: string; readonly sequence: string; readonly storedAt: Date };
  /** The number of deliveries. */
  readonly attempts: number;
  readonly diedAt: Date;
  /** The bytes of the original message. */
  readonly data: Uint8Array;
}

/**
 * The subject of the dead letters of a group. The subject begins with `_`, so no pattern of a domain and no `>`
 * matches it. Therefore a group never gets the dead letters that it caused.
 *
 * @example
 * import { deadLetterSubject } from 'millrace/bus';
 *
 * console.log(deadLetterSubject('email-send-workers')); // _dead.email-send-workers
 */
export function deadLetterSubject(group: string): string {
  return `_dead.${group}`;
}

/** Replayed dead letters: each group reads this subject in addition to its pattern. */
export function redoSubject(group: string): string {
  return `_redo.${group}`;
}

/** The subject for the replies to the requests of one bus. */
export function replySubject(token: string): string {
  return `_reply.${token}`;
}

/** The metadata of a dead letter (`EngineEntry.meta`). */
export interface DeadLetterMeta {
  readonly group: string;
  readonly cause: DeadLetterCause;
  readonly reason: string;
  readonly subject: string;
  readonly sequence: string;
  readonly storedAtMs: number;
  readonly attempts: number;
  readonly diedAtMs: number;
}

type DeadLetters = Pick<Bus, 'deadLetters' | 'replayDeadLetters' | 'discardDeadLetters'>;

export function createDeadLetters(
  engine: BusEngine,
  { dedupeWindowMs }: { readonly dedupeWindowMs: number },
): DeadLetters {
  async function* letters(group: string, from: string | undefined, batchMax: number) {
    const never = new AbortController().signal;
    const batches = await engine.read(deadLetterSubject(group), {
      from: from === undefined ? 'start' : { sequence: from },
      isLive: false,
      signal: never,
      batchMax,
    });
    for await (const batch of batches) yield* batch;
  }

  /** The existing letters with these sequences. */
  async function find(group: string, sequences: readonly string[]): Promise<StoredEntry[]> {
    const sorted = sequences.toSorted(compareSequences);
    const wanted = new Set(sorted);
    const last = sorted.at(-1);
    const found: StoredEntry[] = [];
    for await (const letter of letters(group, sorted[0], limits.pageDefault)) {
      if (last === undefined || compareSequences(letter.sequence, last) > 0) break;
      if (wanted.has(letter.sequence)) found.push(letter);
    }
    return found;
  }

  return {
    async deadLetters(group, { after, limit = limits.pageDefault, bytesMax = Infinity } = {}) {
      checkGroupName(group);
      checkInteger('limit', limit, { min: 1, max: limits.pageMax });
      if (after !== undefined) checkSequences([after]);
      const page: BusDeadLetter[] = [];
      let bytes = 0;
      for await (const letter of letters(group, after, limit + 1)) {
        if (letter.sequence === after) continue;
        page.push(toDeadLetter(letter));
        bytes += letter.data.byteLength;
        if (page.length === limit || bytes >= bytesMax) break;
      }
      return page;
    },
    async replayDeadLetters(group, sequences) {
      checkGroupName(group);
      checkSequences(sequences);
      if (sequences.length === 0) return 0;
      const found = await find(group, sequences);
      if (found.length === 0) return 0;
      const subject = redoSubject(group);
      // Store before removing: after a crash in between, the letter still exists, and its id detects the copy.
      const copies = found.map(({ sequence, data, meta }) => ({
        subject,
        id: `redo:${sequence}`,
        data,
        meta,
      }));
      await engine.append(copies, { dedupeWindowMs });
      await engine.remove(
        deadLetterSubject(group),
        found.map(({ sequence }) => sequence),
      );
      return found.length;
    },
    async discardDeadLetters(group, sequences) {
      checkGroupName(group);
      checkSequences(sequences);
      return sequences.length === 0 ? 0 : engine.remove(deadLetterSubject(group), sequences);
    },
  };
}

function checkSequences(sequences: readonly string[]): void {
  checkInteger('sequences', sequences.length, { min: 0, max: limits.pageMax });
  if (sequences.every((each) => typeof each === 'string' && isSequence(each))) return;
  throw invalid('sequences', 'must be sequences of dead letters from deadLetters()');
}

const damagedMeta = 'the stored description of the dead letter is damaged';

function toDeadLetter({ sequence, data, meta, storedAtMs, subject }: StoredEntry): BusDeadLetter {
  const stored = meta === undefined ? {} : parseStored(meta);
  const fields = Object(stored) as Partial<DeadLetterMeta>;
  return {
    sequence,
    group: fields.group ?? subject.slice('_dead.'.length),
    cause: fields.cause ?? 'terminated',
    reason:
      fields.reason ??
      (stored === undefined ? damagedMeta : 'another program wrote this without the bus'),
    origin: {
      subject: fields.subject ?? subject,
      sequence: fields.sequence ?? sequence,
      storedAt: new Date(fields.storedAtMs ?? storedAtMs),
    },
    attempts: fields.attempts ?? 0,
    diedAt: new Date(fields.diedAtMs ?? storedAtMs),
    data,
  };
}
