// The events of a file in chunks that are written at once: small enough for memory, and split wherever an event must be
// stored before the next one.

import { metadataType, streamOfMetadata, tombstoneType } from '../../store/stream-metadata.ts';
import { lineInvalid, parseExportLine, type ExportedEvent } from './export-format.ts';

export interface ImportChunk {
  readonly events: readonly ExportedEvent[];
  /** The last line so far is a checkpoint, so nothing is missing. */
  readonly complete: boolean;
}

export const importLimits = {
  chunkEvents: 1_000,
  chunkChars: 8 * 1_048_576,
  /** Concurrent appends and lookups in the target. */
  parallel: 16,
  /** Streams whose revision mapping is cached, in addition to all with gaps; others are looked up. */
  streamsRemembered: 200_000,
  /** Maximum number of erased persons in the report. */
  subjectsReported: 1_000,
} as const;

export async function* importChunks(
  source: AsyncIterable<string | Uint8Array>,
): AsyncGenerator<ImportChunk, void, undefined> {
  let chunk = newChunk();
  let line = 0;
  let complete = false;
  for await (const { lines, unended } of readLines(source)) {
    for (const json of lines) {
      line += 1;
      if (json.trim() === '') continue;
      if (unended === true && !isJson(json)) {
        yield { events: chunk.events, complete: false };
        throw lineInvalid(line, 'ends too early: resume the export, and import again');
      }
      const parsed = parseExportLine(json, line);
      complete = parsed.kind === 'checkpoint';
      if (parsed.kind === 'checkpoint') continue;
      if (mustCut(chunk, parsed.event)) {
        yield { events: chunk.events, complete: false };
        chunk = newChunk();
      }
      add(chunk, parsed.event, json.length);
    }
  }
  yield { events: chunk.events, complete };
}

/**
 * A tombstone is alone in its chunk. After the metadata of a stream, no event of that stream is in the same chunk.
 * No event is in a chunk twice, because a file may contain two exports.
 */
function mustCut(chunk: Chunk, event: ExportedEvent): boolean {
  const { events, chars, revisions, settled } = chunk;
  if (events.length === 0) return false;
  return (
    events.length >= importLimits.chunkEvents ||
    chars >= importLimits.chunkChars ||
    isTombstone(event) ||
    events.slice(0, 1).some(isTombstone) ||
    settled.has(subjectOf(event)) ||
    (revisions.get(event.stream) ?? -1) >= event.revision
  );
}

interface Chunk {
  readonly events: ExportedEvent[];
  chars: number;
  /** The last revision of each stream. */
  readonly revisions: Map<string, number>;
  /** Streams with metadata in the chunk. */
  readonly settled: Set<string>;
}

function newChunk(): Chunk {
  return { events: [], chars: 0, revisions: new Map(), settled: new Set() };
}

function add(chunk: Chunk, event: ExportedEvent, chars: number): void {
  chunk.events.push(event);
  chunk.chars += chars;
  chunk.revisions.set(event.stream, event.revision);
  if (event.envelope.type === metadataType) chunk.settled.add(subjectOf(event));
}

export function isTombstone({ envelope }: ExportedEvent): boolean {
  return envelope.type === tombstoneType;
}

/** The stream of an event, or the stream that its metadata describes. */
export function subjectOf({ stream }: Pick<ExportedEvent, 'stream'>): string {
  return streamOfMetadata(stream) ?? stream;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Far above the largest event, because a file without line breaks must not fill the memory. */
const lineCharsMax = 256 * 1_048_576;

interface Lines {
  readonly lines: readonly string[];
  /** The last line, without a line break: it may be incomplete. */
  readonly unended?: true;
}

/** Splits a stream of bytes or strings into lines; holds back at most one line. */
async function* readLines(
  source: AsyncIterable<string | Uint8Array>,
): AsyncGenerator<Lines, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  let count = 0;
  const decode = (bytes?: Uint8Array): string => {
    try {
      return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
      throw lineInvalid(count + 1, 'or one of the next is not UTF-8');
    }
  };
  for await (const piece of source) {
    const text = typeof piece === 'string' ? piece : decode(piece);
    if (!text.includes('\n')) {
      rest += text;
      if (rest.length > lineCharsMax) throw lineInvalid(count + 1, 'is too long');
      continue;
    }
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    count += lines.length;
    yield { lines };
  }
  rest += decode();
  if (rest !== '') yield { lines: [rest], unended: true };
}
