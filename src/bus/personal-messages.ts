// Messages with the header `dataSubject`: their payload is encrypted with the key of the person before an engine stores
// it, also in dead letters, and therefore in archives. Messages of a forgotten person are skipped.

import { override } from '../foundation/override.ts';
import { isForgotten, isSealed, subjectForgotten, subjectHeader } from '../store/erasure.ts';
import type { PersonalData } from '../store/personal-data.ts';
import type { BusEngine, EngineEntry, LeasedEntry, StoredEntry } from './bus-engine.ts';
import { invalid } from './check-bus.ts';
import type { DeadLetterMeta } from './dead-letter.ts';
import { checkMessageSize, type TransportEnvelope } from './transport-envelope.ts';

/** The id that encrypted payloads are bound to: a dead letter and an archive contain them unchanged. */
const boundTo = 'bus';

interface PersonalMessage {
  readonly subject: string;
  readonly envelope: TransportEnvelope;
}

/** An engine whose callers see plain payloads, and which stores encrypted ones. */
export function personalBusEngine(
  engine: BusEngine,
  personalData: PersonalData | undefined,
): BusEngine {
  return personalData === undefined ? withoutKeys(engine) : withKeys(engine, personalData);
}

function withKeys(engine: BusEngine, personalData: PersonalData): BusEngine {
  /** Undefined: the person was forgotten. */
  async function sealAll<Entry extends EngineEntry>(
    entries: readonly Entry[],
  ): Promise<readonly (Entry | undefined)[]> {
    const plain = entries.map((entry) => {
      const personal = personalMessage(entry.data);
      return personal === undefined || isSealed(personal.envelope.payload) ? undefined : personal;
    });
    const values = plain.flatMap((personal) =>
      personal === undefined
        ? []
        : [
            {
              subject: personal.subject,
              id: boundTo,
              json: JSON.stringify(personal.envelope.payload),
            },
          ],
    );
    if (values.length === 0) return entries;
    const sealed = (await personalData.seal(values)).values();
    return entries.map((entry, at) => {
      const { envelope } = plain[at] ?? {};
      if (envelope === undefined) return entry;
      const payload: unknown = JSON.parse(sealed.next().value ?? 'null');
      return isForgotten(payload)
        ? undefined
        : { ...entry, data: encode({ ...envelope, payload }) };
    });
  }

  async function unsealAll<Entry extends StoredEntry>(
    entries: readonly Entry[],
  ): Promise<readonly (Entry | undefined)[]> {
    const found = entries.map(({ data }) => personalMessage(data));
    const values = found.flatMap((personal) =>
      personal === undefined
        ? []
        : [{ subject: personal.subject, id: boundTo, value: personal.envelope.payload }],
    );
    if (values.length === 0) return entries;
    const opened = (await personalData.unseal(values)).values();
    return entries.map((entry, at) => {
      const { envelope } = found[at] ?? {};
      if (envelope === undefined) return entry;
      const payload: unknown = opened.next().value;
      return isForgotten(payload)
        ? undefined
        : { ...entry, data: encode({ ...envelope, payload }) };
    });
  }

  return override(engine, {
    async append(entries, options) {
      const sealed = await sealAll(entries);
      const stored = sealed.map((entry, at) => {
        if (entry !== undefined) return entry;
        throw subjectForgotten(personalMessage(entries[at]?.data)?.subject ?? '');
      });
      for (const { data } of stored) checkMessageSize(data);
      return engine.append(stored, options);
    },
    async settle(group, settlements) {
      const dead = settlements.filter((each) => each.kind === 'dead');
      if (!dead.some(({ letter }) => personalMessage(letter.data) !== undefined)) {
        return engine.settle(group, settlements);
      }
      const letters = (await sealAll(dead.map(({ letter }) => letter))).values();
      const sealed = settlements.map((each) => {
        if (each.kind !== 'dead') return each;
        const letter = letters.next().value;
        // The person was forgotten while the message was handled.
        if (letter === undefined) return { kind: 'ack', token: each.token } as const;
        const personal = personalMessage(each.letter.data);
        if (personal === undefined) return each;
        // No handler got a message that is still encrypted, so its reason is not from a handler.
        return isSealed(personal.envelope.payload)
          ? each
          : { ...each, letter: withoutReason(letter) };
      });
      return engine.settle(group, sealed);
    },
    async fetch(group, request) {
      const entries = await engine.fetch(group, request);
      const opened = await unsealAll(entries);
      const forgotten = entries.filter((_entry, at) => opened[at] === undefined);
      if (forgotten.length > 0) {
        await engine.settle(
          group,
          forgotten.map(({ token }) => ({ kind: 'ack', token })),
        );
      }
      return opened.flatMap((entry) => (entry === undefined ? [] : [withReadability(entry)]));
    },
    async read(pattern, request) {
      const batches = await engine.read(pattern, request);
      return (async function* () {
        for await (const batch of batches) {
          const opened = (await unsealAll(batch)).filter((entry) => entry !== undefined);
          if (opened.length > 0) yield opened;
        }
      })();
    },
  });
}

/** A message about a person is not stored in plain text. */
function withoutKeys(engine: BusEngine): BusEngine {
  return override(engine, {
    async append(entries, options) {
      for (const { data } of entries) {
        const personal = personalMessage(data);
        if (personal === undefined || isSealed(personal.envelope.payload)) continue;
        throw invalid(
          `headers.${subjectHeader}`,
          'needs the keys of an event store: open the bus with the option personalData',
        );
      }
      return engine.append(entries, options);
    },
  });
}

const headerBytes = Buffer.from(`"${subjectHeader}"`);

/** Undefined: the message is not about a person, or it is not an envelope. */
function personalMessage(data: Uint8Array = new Uint8Array()): PersonalMessage | undefined {
  // Most messages have no such header, and need not be parsed.
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (!bytes.includes(headerBytes)) return undefined;
  try {
    const envelope = JSON.parse(bytes.toString()) as TransportEnvelope;
    const subject = envelope.headers?.[subjectHeader];
    return typeof subject === 'string' ? { subject, envelope } : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function encode(envelope: TransportEnvelope): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(envelope));
}

/** Without this, a handler would get the encrypted text as its payload. */
function withReadability(entry: LeasedEntry): LeasedEntry {
  if (!isSealed(personalMessage(entry.data)?.envelope.payload)) return entry;
  const unreadable =
    'the payload cannot be decrypted: the key of its person is missing, or the text is damaged';
  return { ...entry, unreadable };
}

/** The error of a handler may repeat personal data. */
function withoutReason(letter: EngineEntry): EngineEntry {
  if (letter.meta === undefined) return letter;
  const meta = JSON.parse(letter.meta) as DeadLetterMeta;
  const reason = 'not stored: the message is about a person';
  return { ...letter, meta: JSON.stringify({ ...meta, reason }) };
}
