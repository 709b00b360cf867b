// The bus has two streams in JetStream. One holds all domains, so that patterns have one order. The other holds subjects
// that begin with `_`, so that no pattern of a domain matches them. Subjects of the bus are subjects of NATS.

import { MillraceError } from '../../../foundation/error.ts';

export interface BusLayout {
  readonly streams: readonly string[];
  /** The stream of a subject, or of all subjects that match a pattern. */
  streamOf(pattern: string): string;
  toNats(pattern: string): string;
  /** Undefined: the subject does not belong to this bus. */
  fromNats(subject: string): string | undefined;
  /** The subject that the stream must include to accept this subject or this filter of a consumer. */
  coverOf(pattern: string): string;
}

export function checkNames(names: Readonly<Record<string, string | undefined>>): void {
  for (const [field, name] of Object.entries(names)) {
    if (name === undefined || /^[A-Za-z0-9_-]+$/.test(name)) continue;
    const text = `the NATS option ${field} must be letters, digits, "_" or "-"`;
    throw new MillraceError('CONFIG_INVALID', text, { details: { field } });
  }
}

/** Roots that NATS reserves: a stream over them would capture replies to clients. */
const reserved = /^(?:\$|_INBOX$|_R_$|_GR_$)/;

export function createBusLayout(options: {
  readonly stream: string;
  readonly prefix?: string | undefined;
}): BusLayout {
  const { stream, prefix } = options;
  const system = `${stream}-system`;
  const front = prefix === undefined ? '' : `${prefix}.`;
  return {
    streams: [stream, system],
    streamOf: (pattern) => (pattern.startsWith('_') ? system : stream),
    toNats: (pattern) => `${front}${pattern}`,
    fromNats: (subject) => (subject.startsWith(front) ? subject.slice(front.length) : undefined),
    coverOf(pattern) {
      const [root = ''] = pattern.split('.', 1);
      if (root === '*' || root === '>') return `${front}${placeholderOf(pattern)}`;
      if (front === '' && reserved.test(root)) {
        throw new MillraceError('BUS_INVALID', `subject '${pattern}' is reserved by NATS`, {
          details: { field: 'subject' },
        });
      }
      return pattern === root ? `${front}${root}` : `${front}${root}.>`;
    },
  };
}

/**
 * A server rejects a filter that no subject of its stream matches, so the stream includes a matching subject without
 * messages.
 */
function placeholderOf(pattern: string): string {
  const tokens = pattern.split('.').map((token) => (/^[*>]$/.test(token) ? 'none' : token));
  return ['_none', ...tokens.slice(1)].join('.');
}
