// Readers that have this process's messages before they are stored. The order that they see is that of the log:
// a reader is told early only while everything before is stored and read by it, or was told to it early, too.

import { matchesFilter, type EngineEntry } from '../../bus/bus-engine.ts';

interface EarlyReader {
  /** Everything up to this number is read, and done with. */
  readonly reached: (seq: number) => void;
  readonly leave: () => void;
}

interface EarlyAppend {
  /** Once it is in the writer's queue. */
  tell(): void;
  /** It is stored up to this number; 0: it is not, and never will be. */
  settled(seq: number): void;
}

export interface EarlyReaders {
  /** `behind`: the last number that may be stored and was not read by it. */
  join(
    filter: string,
    give: (entries: readonly EngineEntry[]) => void,
    behind: number,
  ): EarlyReader;
  /** Called in the order of the writer's queue. */
  append(entries: readonly EngineEntry[], options: { readonly isEarly: boolean }): EarlyAppend;
  /** Others may have written up to this number. */
  behind(seq: number): void;
}

interface Seat {
  readonly filter: string;
  readonly give: (entries: readonly EngineEntry[]) => void;
  /** Appends under way that it was not told of. */
  untold: number;
  /** The last number that is stored and that it was not told of. */
  behind: number;
  reached: number;
}

interface Under {
  readonly entries: readonly EngineEntry[];
  readonly untold: Set<Seat>;
}

export function createEarlyReaders(): EarlyReaders {
  const seats = new Set<Seat>();
  const underWay = new Set<Under>();

  const isFor = ({ filter }: Seat, entries: readonly EngineEntry[]): boolean =>
    entries.some(({ subject }) => matchesFilter(filter, subject));

  function miss(seat: Seat, append: Under): void {
    append.untold.add(seat);
    seat.untold += 1;
  }

  return {
    join(filter, give, behind) {
      const seat: Seat = { filter, give, untold: 0, behind, reached: 0 };
      for (const each of underWay) if (isFor(seat, each.entries)) miss(seat, each);
      seats.add(seat);
      return {
        reached: (seq) => void (seat.reached = seq),
        leave: () => void seats.delete(seat),
      };
    },
    append(entries, { isEarly }) {
      const append: Under = { entries, untold: new Set() };
      const told: Seat[] = [];
      for (const seat of seats) {
        if (!isFor(seat, entries)) continue;
        if (isEarly && seat.untold === 0 && seat.reached >= seat.behind) told.push(seat);
        else miss(seat, append);
      }
      underWay.add(append);
      return {
        tell() {
          for (const { filter, give } of told) {
            give(entries.filter(({ subject }) => matchesFilter(filter, subject)));
          }
        },
        settled(seq) {
          if (!underWay.delete(append)) return;
          for (const seat of append.untold) {
            seat.untold -= 1;
            seat.behind = Math.max(seat.behind, seq);
          }
        },
      };
    },
    behind(seq) {
      for (const seat of seats) seat.behind = Math.max(seat.behind, seq);
    },
  };
}
