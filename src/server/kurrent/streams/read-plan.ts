// Validates a read request and converts it to the terms of the store. Pure.

import type { EventFilter } from '../../../store/event-filter.ts';
import { filterLimits } from '../../../store/event-filter.ts';
import { toCount } from '../protocol/wire-number.ts';
import type {
  WireAllOptions,
  WireExpression,
  WireFilter,
  WireStreamOptions,
} from '../protocol/shared-messages.ts';
import type { WireReadRequest } from '../protocol/streams-messages.ts';
import { badRequest } from '../rpc-error.ts';
import { indexFilter, rejectUnsupported } from './index-stream.ts';
import { streamNameOf } from './stream-name.ts';

/** A revision or a sequence: inclusive for reads, exclusive for subscriptions. */
export type From = number | 'start' | 'end';

export interface ReadPlan {
  readonly source:
    | { readonly kind: 'stream'; readonly stream: string }
    /** `$ce-`, `$et-`: numbered by the sequence of the store. */
    | { readonly kind: 'index'; readonly stream: string; readonly filter: EventFilter }
    | {
        readonly kind: 'all';
        readonly filter: EventFilter;
        /** The number of examined events between checkpoints; undefined without a filter. */
        readonly checkpointEvery: number | undefined;
      };
  readonly from: From;
  readonly direction: 'forwards' | 'backwards';
  readonly limit: number;
  readonly live: boolean;
  readonly resolveLinks: boolean;
  readonly structuredIds: boolean;
  /** The client understands the first and last position of a stream. */
  readonly wantsPositions: boolean;
}

/** The default search window of the protocol. */
const windowDefault = 32;

export function planRead({ options }: WireReadRequest): ReadPlan {
  if (options === undefined) throw badRequest('the read has no options');
  const live = options.subscription !== undefined;
  if (!live && options.count === undefined)
    throw badRequest('the read has neither count nor subscription');
  const direction = options.readDirection === 1 ? 'backwards' : 'forwards';
  if (live && direction === 'backwards') throw badRequest('a subscription reads forwards');
  const about = {
    direction,
    live,
    limit: options.count === undefined ? Number.POSITIVE_INFINITY : toCount(options.count),
    resolveLinks: options.resolveLinks,
    structuredIds: options.uuidOption?.structured !== undefined,
    wantsPositions: (options.controlOption?.compatibility ?? 0) >= 1,
  } as const;
  if (about.limit < 1) throw badRequest('the read must have a count of at least 1');
  if (options.stream !== undefined) {
    const stream = streamNameOf(options.stream.streamIdentifier);
    rejectUnsupported(stream);
    const from = fromOf(options.stream, options.stream.revision, direction);
    const filter = indexFilter(stream);
    if (filter === undefined) return { ...about, from, source: { kind: 'stream', stream } };
    return { ...about, from, source: { kind: 'index', stream, filter } };
  }
  if (options.all === undefined) throw badRequest('the read names neither a stream nor all');
  const filter = options.filter ?? undefined;
  return {
    ...about,
    from: fromOf(options.all, options.all.position?.commitPosition, direction),
    source: {
      kind: 'all',
      filter: filter === undefined ? { system: true } : toEventFilter(filter),
      checkpointEvery: filter === undefined ? undefined : checkpointEvery(filter),
    },
  };
}

/** The filter of the store, which validates the pattern. */
export function toEventFilter({ streamIdentifier, eventType }: WireFilter): EventFilter {
  if (streamIdentifier !== undefined) {
    return { system: true, ...expression(streamIdentifier, 'streamPattern', 'streamPrefixes') };
  }
  if (eventType !== undefined) {
    return { system: true, ...expression(eventType, 'typePattern', 'typePrefixes') };
  }
  throw badRequest('the filter names neither streams nor event types');
}

/** A pattern takes precedence over prefixes. */
function expression(
  { regex, prefix }: WireExpression,
  pattern: 'streamPattern' | 'typePattern',
  prefixes: 'streamPrefixes' | 'typePrefixes',
): EventFilter {
  if (regex !== '') return { [pattern]: regex };
  const { listItemsMax, patternCharsMax } = filterLimits;
  if (prefix.length > listItemsMax || prefix.some((each) => each.length > patternCharsMax)) {
    throw badRequest(
      `a filter holds at most ${listItemsMax} prefixes of ${patternCharsMax} characters`,
    );
  }
  return { [prefixes]: prefix };
}

function checkpointEvery({ max, checkpointIntervalMultiplier }: WireFilter): number {
  if (max !== undefined && max < 1) throw badRequest('the search window must be at least 1');
  return (max ?? windowDefault) * Math.max(1, checkpointIntervalMultiplier);
}

function fromOf(
  { start, end }: WireStreamOptions | WireAllOptions,
  at: Parameters<typeof toCount>[0] | undefined,
  direction: 'forwards' | 'backwards',
): From {
  if (at !== undefined) {
    const count = toCount(at);
    return count === Number.MAX_SAFE_INTEGER ? 'end' : count;
  }
  if (start !== undefined) return 'start';
  if (end !== undefined) return 'end';
  return direction === 'forwards' ? 'start' : 'end';
}
