// Where the bus is in JetStream: one stream for all domains, so that patterns have one order, and one
// for what begins with `_`, so that no pattern of a domain takes it. Subjects are NATS's own.

import { MillraceError } from '../../../foundation/error.ts';

export interface BusLayout {
  readonly streams: readonly string[];
  /** The stream of a subject, or of all subjects that a pattern takes. */
  streamOf(pattern: string): string;
  toNats(pattern: string): string;
  /** Undefined: not one of this bus. */
  fromNats(subject: string): string | undefined;
  /** What the stream must cover, so that it takes this subject, or this filter of a consumer. */
  coverOf(pattern: string): string;
}

/** NATS's own: a stream over them would take the answers that clients wait for. */
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
      if (root === '*' || root === '>') return `${front}${witnessOf(pattern)}`;
      if (front === '' && reserved.test(root)) {
        throw new MillraceError('BUS_INVALID', `subject '${pattern}' belongs to NATS itself`, {
          details: { field: 'subject' },
        });
      }
      return pattern === root ? `${front}${root}` : `${front}${root}.>`;
    },
  };
}

/**
 * A server refuses a filter that neither lies within a subject of its stream nor takes one of them
 * whole. Nobody publishes to this one.
 */
function witnessOf(pattern: string): string {
  const tokens = pattern.split('.').map((token) => (/^[*>]$/.test(token) ? 'none' : token));
  return ['_none', ...tokens.slice(1)].join('.');
}
