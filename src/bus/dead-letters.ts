// The dead letters of a group: read, handed to the group again, discarded.

import type { Bus } from './bus.ts';
import type { BusEngine, StoredEntry } from './bus-engine.ts';
import { busLimits as limits } from './bus-limits.ts';
import { checkGroupName, invalid, wholeNumber } from './check-bus.ts';
import {
  deadLetterSubject,
  redoSubject,
  type BusDeadLetter,
  type DeadLetterMeta,
} from './dead-letter.ts';
import { compareSequences, isSequence } from './sequence.ts';

type DeadLetters = Pick<Bus, 'deadLetters' | 'replayDeadLetters' | 'discardDeadLetters'>;

export function createDeadLetters(
  engine: BusEngine,
  { dedupeWindowMs }: { readonly dedupeWindowMs: number },
): DeadLetters {
  async function* letters(group: string, from: string | undefined) {
    const never = new AbortController().signal;
    const batches = await engine.read(deadLetterSubject(group), {
      from: from === undefined ? 'start' : { sequence: from },
      isLive: false,
      signal: never,
      batchMax: limits.pageDefault,
    });
    for await (const batch of batches) yield* batch;
  }

  /** Those of these sequences that are there. */
  async function find(group: string, sequences: readonly string[]): Promise<StoredEntry[]> {
    const sorted = sequences.toSorted(compareSequences);
    const wanted = new Set(sorted);
    const last = sorted.at(-1);
    const found: StoredEntry[] = [];
    for await (const letter of letters(group, sorted[0])) {
      if (last === undefined || compareSequences(letter.sequence, last) > 0) break;
      if (wanted.has(letter.sequence)) found.push(letter);
    }
    return found;
  }

  return {
    async deadLetters(group, { after, limit = limits.pageDefault } = {}) {
      checkGroupName(group);
      wholeNumber('limit', limit, { min: 1, max: limits.pageMax });
      if (after !== undefined) checkSequences([after]);
      const page: BusDeadLetter[] = [];
      for await (const letter of letters(group, after)) {
        if (letter.sequence !== after) page.push(toDeadLetter(letter));
        if (page.length === limit) break;
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
      // Stored first: whoever is killed in between has the letter still, and its id finds the copy.
      const copies = found.map(({ sequence, data, meta }) => ({
        subject,
        id: `redo:${sequence}`,
        data,
        meta,
      }));
      await engine.append(copies, { dedupeWindowMs, isRelaxed: false });
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
  wholeNumber('sequences', sequences.length, { min: 0, max: limits.pageMax });
  if (sequences.every((each) => typeof each === 'string' && isSequence(each))) return;
  throw invalid('sequences', 'must be sequences of dead letters, as they were listed');
}

function toDeadLetter({ sequence, data, meta, storedAtMs, subject }: StoredEntry): BusDeadLetter {
  const fields = (meta === undefined ? {} : JSON.parse(meta)) as Partial<DeadLetterMeta>;
  return {
    sequence,
    group: fields.group ?? subject.slice('_dead.'.length),
    cause: fields.cause ?? 'terminated',
    reason: fields.reason ?? 'somebody wrote this past the bus',
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
