// The file's events in chunks that can be written at once: small enough to hold, and cut wherever
// one event must be in the store before the next.

import { metadataType, streamOfMetadata, tombstoneType } from '../../store/stream-metadata.ts';
import { lineInvalid, parseExportLine, type ExportedEvent } from './export-format.ts';

export interface ImportChunk {
  readonly events: readonly ExportedEvent[];
  /** The last line so far was a checkpoint: nothing is missing behind it. */
  readonly complete: boolean;
}

export const importLimits = {
  chunkEvents: 1_000,
  chunkChars: 8 * 1_048_576,
  /** Appends, and look-ups in the target, that are under way at once. */
  parallel: 16,
  /** Streams whose place in the target is remembered, beside all with holes; others are looked up. */
  streamsRemembered: 200_000,
  /** Of forgotten people, for the report. */
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
 * A tombstone stands alone; behind a stream's metadata nothing of that stream comes in the same
 * chunk, and neither does what the chunk has already, from two exports in one file.
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
  /** Streams whose metadata is in it. */
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

/** The stream that an event is about: its own, or the one whose metadata it holds. */
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

/** Far above the largest event: a file without line breaks must not fill the memory. */
const lineCharsMax = 256 * 1_048_576;

interface Lines {
  readonly lines: readonly string[];
  /** The last line, without a line break: it may be incomplete. */
  readonly unended?: true;
}

/** Splits a stream of bytes or text into lines; holds back at most one line. */
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
