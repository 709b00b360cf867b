// Where the bus keeps what in Redis. A stream's key is its subject with colons; everything else has a
// full stop in its key, which no stream has. What a script changes together lies in one slot: on one
// server (or with a hash tag in the prefix) everything does, on a cluster what belongs to one stream.

import { nameInvalid } from '../../contracts/identifier.ts';
import { streamKeyToSubject, subjectToStreamKey } from '../../contracts/subject-match.ts';
import { MillraceError } from '../../foundation/error.ts';

export interface BusSpace {
  /** All keys in one slot, or no slots at all: one domain. */
  readonly isOneDomain: boolean;
  readonly prefix: string;
  /** ZSET of subjects, scored by when they came; the empty one has the last score. */
  readonly registry: string;
  /** HASH from a group to its record. */
  readonly groups: string;
  /** HASH from a group to how often it was made. */
  readonly generations: string;
  readonly channel: string;
  readonly streamKey: (subject: string) => string;
  /** Undefined: no key of a stream of this bus. */
  subjectOf(streamKey: string): string | undefined;
  /** What lies in one slot with the stream; scripts work on one domain. */
  readonly domainOf: (streamKey: string) => string;
  /** Tells the life of a stream: message ids are remembered for one life. */
  mark(streamKey: string): string;
  /** ZSET of what is handed out, and the HASH of its fences. */
  leases(domain: string, native: string): readonly [string, string];
}

export function createBusSpace(options: {
  readonly isCluster: boolean;
  readonly prefix: string;
}): BusSpace {
  const { isCluster, prefix } = options;
  if (/\s/.test(prefix)) {
    const text = 'keyPrefix must not hold whitespace';
    throw new MillraceError('CONFIG_INVALID', text, { details: { field: 'keyPrefix' } });
  }
  const isOneDomain = !isCluster || tagOf(prefix) !== undefined;
  const side = (domain: string): string => `${prefix}millrace.bus:{${domain}}`;

  function domainOf(streamKey: string): string {
    if (isOneDomain) return 'bus';
    const tag = tagOf(streamKey) ?? streamKey;
    if (!tag.includes('}')) return tag;
    throw nameInvalid('subject', streamKey, 'holds "}", which parts slots in a Redis Cluster');
  }

  return {
    isOneDomain,
    prefix,
    registry: `${side('bus')}:streams`,
    groups: `${side('bus')}:groups`,
    generations: `${side('bus')}:generations`,
    channel: `${prefix}millrace.bus:wake`,
    streamKey: (subject) => `${prefix}${subjectToStreamKey(subject)}`,
    subjectOf(streamKey) {
      if (!streamKey.startsWith(prefix)) return undefined;
      try {
        return streamKeyToSubject(streamKey.slice(prefix.length));
      } catch {
        return undefined;
      }
    },
    domainOf,
    mark: (streamKey) => `${side(domainOf(streamKey))}:mark:${streamKey}`,
    leases: (domain, native) => [
      `${side(domain)}:leases:${native}`,
      `${side(domain)}:fences:${native}`,
    ],
  };
}

/** The part of a key that alone decides its slot; undefined: all of it does. */
function tagOf(key: string): string | undefined {
  return /^[^{]*\{(?<tag>[^}]+)\}/.exec(key)?.groups?.['tag'];
}
