// The keys of the bus. The key of a stream is its subject with colons; all other keys contain a full stop, which
// no stream key does. Keys that one script changes share a slot domain. On one server, or with a hash tag in the
// prefix, all keys share one domain. On a cluster, the keys of one stream share one.

import { nameInvalid } from '../../../contracts/identifier.ts';
import { streamKeyToSubject, subjectToStreamKey } from '../../../contracts/subject-match.ts';
import { MillraceError } from '../../../foundation/error.ts';

export interface BusKeyspace {
  /** Whether all keys share one slot, or the server has no slots. */
  readonly isOneDomain: boolean;
  readonly prefix: string;
  /** ZSET of subjects by version; the empty subject has the highest version. */
  readonly registry: string;
  /** Exists while the streams of other programs were searched recently. */
  readonly searched: string;
  /** HASH from group to record. */
  readonly groups: string;
  /** HASH from group to the number of times that it was created. */
  readonly generations: string;
  readonly channel: string;
  readonly streamKey: (subject: string) => string;
  /** Undefined if the key is not a stream of this bus. */
  subjectOf(streamKey: string): string | undefined;
  /** The slot domain of the stream; each script call works on one domain. */
  readonly domainOf: (streamKey: string) => string;
  /** Identifies one incarnation of a stream; message ids are remembered until the stream is deleted. */
  mark(streamKey: string): string;
  /** ZSET of leases, and HASH of their fences. */
  leases(domain: string, native: string): readonly [string, string];
}

export function createBusKeyspace(options: {
  readonly isCluster: boolean;
  readonly prefix: string;
}): BusKeyspace {
  const { isCluster, prefix } = options;
  if (/\s/.test(prefix)) {
    const text = 'keyPrefix must not contain whitespace';
    throw new MillraceError('CONFIG_INVALID', text, { details: { field: 'keyPrefix' } });
  }
  const isOneDomain = !isCluster || tagOf(prefix) !== undefined;
  const sideKey = (domain: string): string => `${prefix}millrace.bus:{${domain}}`;

  function domainOf(streamKey: string): string {
    if (isOneDomain) return 'bus';
    const tag = tagOf(streamKey) ?? streamKey;
    if (!tag.includes('}')) return tag;
    throw nameInvalid(
      'subject',
      streamKey,
      'contains "}", which ends a hash tag in a Redis Cluster',
    );
  }

  return {
    isOneDomain,
    prefix,
    registry: `${sideKey('bus')}:streams`,
    searched: `${sideKey('bus')}:searched`,
    groups: `${sideKey('bus')}:groups`,
    generations: `${sideKey('bus')}:generations`,
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
    mark: (streamKey) => `${sideKey(domainOf(streamKey))}:mark:${streamKey}`,
    leases: (domain, native) => [
      `${sideKey(domain)}:leases:${native}`,
      `${sideKey(domain)}:fences:${native}`,
    ],
  };
}

/** The hash tag of a key, which decides its slot; undefined if the whole key does. */
function tagOf(key: string): string | undefined {
  return /^[^{]*\{(?<tag>[^}]+)\}/.exec(key)?.groups?.['tag'];
}
